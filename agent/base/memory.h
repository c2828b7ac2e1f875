/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ownership: cleanup attributes for locals, hand-over marks, and the arena that owns all of a snapshot.
 * A pointer received is borrowed unless the function's name says `take`.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_freep(void *p) {
        free(*(void **) p);
}
static inline void cleanup_fdp(int *fd) {
        if (*fd >= 0)
                close(*fd);
}
static inline void cleanup_filep(FILE **f) {
        if (*f)
                fclose(*f);
}
static inline void cleanup_dirp(DIR **d) {
        if (*d)
                closedir(*d);
}

#define cleanup_free __attribute__((cleanup(cleanup_freep)))
#define cleanup_fd __attribute__((cleanup(cleanup_fdp)))
#define cleanup_file __attribute__((cleanup(cleanup_filep)))
#define cleanup_dir __attribute__((cleanup(cleanup_dirp)))

/* Hands the value over and leaves the empty value behind: marks the line where ownership leaves. */
#define take_ptr(p)                                                                                         \
        ({                                                                                                  \
                __typeof__(p) taken_ = (p);                                                                 \
                (p) = NULL;                                                                                 \
                taken_;                                                                                     \
        })
#define take_fd(fd)                                                                                         \
        ({                                                                                                  \
                int taken_ = (fd);                                                                          \
                (fd) = -1;                                                                                  \
                taken_;                                                                                     \
        })

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/*
 * An arena owns every string and array of one snapshot; freeing it is one call. It grows in chunks up to
 * the maximum given at creation; past that every allocation fails (NULL), which ends the tick, not the process.
 */
struct arena;

struct arena *arena_new(size_t max_bytes); /* NULL: out of memory */
void arena_free(struct arena *arena);      /* NULL is fine */
size_t arena_used(const struct arena *arena);

/* Zeroed, aligned for any type. NULL: full or out of memory. Size 0 gives a valid, empty object. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t size); /* checks the product */
/* A growing array: returns the (possibly moved) array able to hold @count + 1; doubles its room. */
void *arena_grow(struct arena *arena, void *array, size_t count, size_t *room, size_t size);
char *arena_string(struct arena *arena, const char *text);
char *arena_string_n(struct arena *arena, const char *text, size_t length);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void cleanup_arenap(struct arena **arena) {
        arena_free(*arena);
}
#define cleanup_arena __attribute__((cleanup(cleanup_arenap)))
