/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "../../agent/base/memory.h"

Test(arena, gives_zeroed_aligned_distinct_objects) {
        cleanup_arena struct arena *arena = arena_new(1 << 20);
        unsigned char *previous = NULL;

        for (size_t size = 0; size < 300; size++) {
                unsigned char *object = arena_alloc(arena, size);

                cr_assert(object && object != previous);
                cr_assert((uintptr_t) object % alignof(max_align_t) == 0);
                for (size_t i = 0; i < size; i++)
                        cr_assert(object[i] == 0);
                memset(object, 0xff, size);
                previous = object;
        }
}

Test(arena, holds_its_maximum_and_then_refuses) {
        cleanup_arena struct arena *arena = arena_new(4096);

        cr_assert(arena_alloc(arena, 4000));
        cr_assert(!arena_alloc(arena, 4000));
        cr_assert(arena_alloc(arena, 96));
        cr_assert(arena_used(arena) == 4096);
        cr_assert(!arena_alloc(arena, 0));
        cr_assert(!arena_string(arena, ""));
        cr_assert(!arena_format(arena, "%d", 1));
        cr_assert(arena_used(arena) == 4096);
}

Test(arena, refuses_sizes_that_overflow) {
        cleanup_arena struct arena *arena = arena_new(SIZE_MAX);
        size_t room = SIZE_MAX / 2 + 1;

        cr_assert(!arena_alloc(arena, SIZE_MAX));
        cr_assert(!arena_alloc(arena, SIZE_MAX - 8));
        cr_assert(!arena_array(arena, SIZE_MAX / 2, 3));
        cr_assert(!arena_array(arena, UINT64_C(1) << 33, UINT64_C(1) << 33));
        cr_assert(!arena_string_n(arena, "", SIZE_MAX));
        cr_assert(!arena_grow(arena, &room, room, &room, 1));
        cr_assert(arena_used(arena) == 0);
        cr_assert(arena_array(arena, 0, 100));
}

Test(arena, with_a_maximum_of_nothing_gives_nothing) {
        cleanup_arena struct arena *arena = arena_new(0);

        cr_assert(!arena_alloc(arena, 1) && !arena_alloc(arena, 0));
}

Test(arena, serves_objects_larger_than_a_chunk) {
        cleanup_arena struct arena *arena = arena_new(64 << 20);
        char *small = arena_string(arena, "before"), *large = arena_alloc(arena, 8 << 20);

        cr_assert(small && large);
        memset(large, 'x', 8 << 20);
        cr_assert_str_eq(small, "before");
        cr_assert_str_eq(arena_string(arena, "after"), "after");
}

Test(arena, grown_arrays_keep_their_content) {
        cleanup_arena struct arena *arena = arena_new(1 << 20);
        size_t room = 0, other_room = 0;
        uint32_t *array = NULL;
        char *other = NULL;

        for (uint32_t i = 0; i < 5000; i++) {
                array = arena_grow(arena, array, i, &room, sizeof(*array));
                cr_assert(array && room > i);
                array[i] = i;
                /* Between, so that the array cannot always grow where it is. */
                if (i % 100 == 0) {
                        other = arena_grow(arena, other, i / 100, &other_room, 1);
                        cr_assert(other);
                        other[i / 100] = (char) (i / 100);
                }
        }
        for (uint32_t i = 0; i < 5000; i++)
                cr_assert(array[i] == i && other[i / 100] == (char) (i / 100));
}

Test(arena, grown_room_is_zeroed) {
        cleanup_arena struct arena *arena = arena_new(1 << 20);
        size_t room = 0;
        unsigned char *array = arena_grow(arena, NULL, 0, &room, 3);

        memset(array, 0xff, 3 * room);
        for (size_t count = room; count < 1000; count = room) {
                array = arena_grow(arena, array, count, &room, 3);
                cr_assert(array);
                for (size_t i = 3 * count; i < 3 * room; i++)
                        cr_assert(array[i] == 0);
                memset(array, 0xff, 3 * room);
        }
}

Test(arena, array_that_cannot_grow_is_still_there) {
        cleanup_arena struct arena *arena = arena_new(128);
        size_t room = 0, before;
        uint64_t *array = arena_grow(arena, NULL, 0, &room, sizeof(*array));

        cr_assert(array && room == 8);
        before = room;
        array[7] = 7;
        while (arena_alloc(arena, 16))
                ;
        cr_assert(!arena_grow(arena, array, 8, &room, sizeof(*array)));
        cr_assert(room == before && array[7] == 7);
}

Test(arena, copies_strings_and_formats) {
        cleanup_arena struct arena *arena = arena_new(1 << 20);
        char text[] = "abc", wide[3000];

        cr_assert_str_eq(arena_string(arena, text), "abc");
        cr_assert(arena_string(arena, text) != text);
        cr_assert_str_eq(arena_string_n(arena, text, 2), "ab");
        cr_assert_str_eq(arena_string_n(arena, NULL, 0), "");
        cr_assert_str_eq(arena_format(arena, "%s-%d", text, 7), "abc-7");
        memset(wide, 'w', sizeof(wide) - 1);
        wide[sizeof(wide) - 1] = '\0';
        cr_assert_str_eq(arena_format(arena, "%s", wide), wide);
}

Test(arena, freeing_nothing_is_fine) {
        arena_free(NULL);
}

Test(memory, what_is_taken_is_not_cleaned_up) {
        int kept = -1;
        char *text = NULL;

        {
                cleanup_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), none = -1;
                cleanup_free char *copy = strdup("kept");

                cr_assert(fd >= 0 && none == -1);
                kept = take_fd(fd);
                text = take_ptr(copy);
                cr_assert(fd == -1 && !copy);
        }
        cr_assert(fcntl(kept, F_GETFD) >= 0);
        cr_assert_str_eq(text, "kept");
        {
                cleanup_fd int again = kept;
                cleanup_free char *gone = text;

                (void) again;
                (void) gone;
        }
        cr_assert(fcntl(kept, F_GETFD) < 0);
}
