/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ALIGNMENT alignof(max_align_t)
#define CHUNK_FIRST ((size_t) 8 << 10)
#define CHUNK_LARGEST ((size_t) 256 << 10)

/* Under AddressSanitizer every object gets its own heap block, so that an overflow inside the arena is seen. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCK_PER_OBJECT 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BLOCK_PER_OBJECT 1
#endif
#ifndef BLOCK_PER_OBJECT
#define BLOCK_PER_OBJECT 0
#endif

struct chunk {
        struct chunk *next;
        size_t used, room;
        alignas(max_align_t) unsigned char data[];
};

struct arena {
        struct chunk *chunks; /* the first one is the one that small objects come from */
        size_t used, max, chunk_size;
        unsigned char *last; /* the newest object: the only one that can grow where it is */
        struct chunk *last_chunk;
};

static size_t align_up(size_t size) {
        return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

struct arena *arena_new(size_t max_bytes) {
        struct arena *arena = calloc(1, sizeof(*arena));

        if (!arena)
                return NULL;
        arena->max = max_bytes;
        arena->chunk_size = BLOCK_PER_OBJECT ? 0 : CHUNK_FIRST;
        return arena;
}

void arena_free(struct arena *arena) {
        if (!arena)
                return;
        for (struct chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
                next = chunk->next;
                free(chunk);
        }
        free(arena);
}

size_t arena_used(const struct arena *arena) {
        return arena->used;
}

/* calloc: fresh chunks of some size come zeroed from the kernel, and nothing is ever given out twice. */
static struct chunk *chunk_new(size_t room) {
        struct chunk *chunk = room <= SIZE_MAX - sizeof(*chunk) ? calloc(1, sizeof(*chunk) + room) : NULL;

        if (chunk)
                chunk->room = room;
        return chunk;
}

/* A chunk with @size bytes left. A large object gets a chunk of its own behind the first, which goes on serving. */
static struct chunk *chunk_for(struct arena *arena, size_t size) {
        struct chunk *first = arena->chunks, *chunk;

        if (first && first->room - first->used >= size)
                return first;
        if (size > arena->chunk_size / 4) {
                chunk = chunk_new(size);
                if (chunk && first) {
                        chunk->next = first->next;
                        first->next = chunk;
                } else if (chunk)
                        arena->chunks = chunk;
                return chunk;
        }
        chunk = chunk_new(arena->chunk_size);
        if (!chunk)
                return NULL;
        if (arena->chunk_size < CHUNK_LARGEST)
                arena->chunk_size *= 2;
        chunk->next = first;
        arena->chunks = chunk;
        return chunk;
}

void *arena_alloc(struct arena *arena, size_t size) {
        struct chunk *chunk;
        size_t need;

        /* Distinct objects have distinct addresses, the empty one too. */
        if (size == 0)
                size = 1;
        if (size > SIZE_MAX - ALIGNMENT)
                return NULL;
        need = align_up(size);
        if (need > arena->max || arena->used > arena->max - need)
                return NULL;
        chunk = chunk_for(arena, BLOCK_PER_OBJECT ? size : need);
        if (!chunk)
                return NULL;
        arena->last = chunk->data + chunk->used;
        arena->last_chunk = chunk;
        chunk->used += BLOCK_PER_OBJECT ? size : need;
        arena->used += need;
        return arena->last;
}

void *arena_array(struct arena *arena, size_t count, size_t size) {
        size_t total;

        if (__builtin_mul_overflow(count, size, &total))
                return NULL;
        return arena_alloc(arena, total);
}

/* The newest object can grow into what its chunk has left; saves the copy and the abandoned old array. */
static bool grow_in_place(struct arena *arena, const void *array, size_t old_size, size_t new_size) {
        struct chunk *chunk = arena->last_chunk;
        size_t more = align_up(new_size) - align_up(old_size);

        if (BLOCK_PER_OBJECT || !array || array != arena->last)
                return false;
        if (chunk->room - chunk->used < more || arena->max - arena->used < more)
                return false;
        chunk->used += more;
        arena->used += more;
        return true;
}

void *arena_grow(struct arena *arena, void *array, size_t count, size_t *room, size_t size) {
        size_t new_room, new_size;
        void *grown;

        if (array && count < *room)
                return array;
        if (*room > SIZE_MAX / 2)
                return NULL;
        new_room = *room ? *room * 2 : 8;
        if (__builtin_mul_overflow(new_room, size, &new_size) || new_size > SIZE_MAX - ALIGNMENT)
                return NULL;
        if (size > 0 && grow_in_place(arena, array, *room * size, new_size)) {
                *room = new_room;
                return array;
        }
        grown = arena_alloc(arena, new_size);
        if (!grown)
                return NULL;
        if (array && count > 0)
                memcpy(grown, array, count * size);
        *room = new_room;
        return grown;
}

char *arena_string_n(struct arena *arena, const char *text, size_t length) {
        char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

        if (copy && length > 0)
                memcpy(copy, text, length);
        return copy;
}

char *arena_string(struct arena *arena, const char *text) {
        return arena_string_n(arena, text, strlen(text));
}

char *arena_format(struct arena *arena, const char *format, ...) {
        va_list arguments;
        char *out = NULL;
        int length;

        va_start(arguments, format);
        length = vsnprintf(NULL, 0, format, arguments);
        va_end(arguments);
        if (length >= 0)
                out = arena_alloc(arena, (size_t) length + 1);
        if (!out)
                return NULL;
        va_start(arguments, format);
        (void) vsnprintf(out, (size_t) length + 1, format, arguments);
        va_end(arguments);
        return out;
}
