"""`python -m adjit.explore script.py[:function]`: run a script, and write the explorer page of a function that it calls."""

from adjit.runtime.explore_script import main

if __name__ == "__main__":
    main()
