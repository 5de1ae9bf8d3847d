"""`python -m adjit.tune`: measure this machine's matrix products, and keep who computes them fastest."""

from adjit.runtime.tune import main

if __name__ == "__main__":
    main()
