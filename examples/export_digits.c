/* Trains the digits with an exported step: see export_digits.py, which builds this program and compares its losses with those of Python.
 *
 *     train FOLDER EPOCHS COUNT
 *
 * FOLDER holds images.bin (float, COUNT x 28 x 28) and labels.bin (int64_t). Prints the loss, exactly, and the accuracy of every batch.
 */
#include "step.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH 50
#define PIXELS (28 * 28)

static void *read_file(const char *folder, const char *name, size_t bytes)
{
    char path[4096];
    void *data = malloc(bytes);
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (data == NULL || file == NULL || fread(data, 1, bytes, file) != bytes) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    int epochs = argc == 4 ? atoi(argv[2]) : 0, count = argc == 4 ? atoi(argv[3]) : 0;
    float *images, loss, accuracy;
    int64_t *labels;
    step_state *state = malloc(sizeof *state);
    void *arena = calloc(1, STEP_ARENA_BYTES);
    if (epochs <= 0 || count <= 0 || state == NULL || arena == NULL) {
        fprintf(stderr, "usage: train FOLDER EPOCHS COUNT\n");
        return 1;
    }
    images = read_file(argv[1], "images.bin", sizeof *images * PIXELS * (size_t)count);
    labels = read_file(argv[1], "labels.bin", sizeof *labels * (size_t)count);

    *state = step_initial;
    for (int epoch = 0; epoch < epochs; epoch++) {
        for (int at = 0; at + BATCH <= count; at += BATCH) {
            int code = step(images + at * PIXELS, labels + at, state, &loss, &accuracy, arena);
            if (code != 0) {
                fprintf(stderr, "%s\n", step_error(code, arena));
                return 1;
            }
            printf("%a %g\n", loss, accuracy);
        }
    }
    step_release(arena);
    free(arena);
    free(state);
    free(images);
    free(labels);
    return 0;
}
