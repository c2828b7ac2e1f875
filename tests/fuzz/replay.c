/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzzer's kept inputs once, without libFuzzer: every input that once broke something is a unit test from then
 * on. Arguments are files and folders.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
        FILE *file = fopen(path, "rbe");
        uint8_t *data;
        size_t size;
        struct stat st;

        if (!file || fstat(fileno(file), &st) < 0) {
                perror(path);
                return -1;
        }
        /* An exact block, so that a read past the end is seen by the sanitizer. */
        data = malloc(st.st_size > 0 ? (size_t) st.st_size : 1);
        if (!data)
                return -1;
        size = fread(data, 1, (size_t) st.st_size, file);
        fclose(file);
        printf("%s\n", path);
        fflush(stdout);
        (void) LLVMFuzzerTestOneInput(data, size);
        free(data);
        return 1;
}

static int replay(const char *path) {
        DIR *directory = opendir(path);
        struct dirent *entry;
        int count = 0;

        if (!directory)
                return replay_file(path);
        while ((entry = readdir(directory))) {
                char child[4096];
                int r;

                if (entry->d_name[0] == '.')
                        continue;
                snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
                r = replay_file(child);
                if (r < 0)
                        exit(1);
                count += r;
        }
        closedir(directory);
        return count;
}

int main(int argc, char **argv) {
        int count = 0;

        for (int i = 1; i < argc; i++) {
                int r = replay(argv[i]);

                if (r < 0)
                        return 1;
                count += r;
        }
        printf("%d inputs\n", count);
        return count > 0 ? 0 : 1;
}
