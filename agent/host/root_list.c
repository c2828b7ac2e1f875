/* SPDX-License-Identifier: Apache-2.0 */
/* Directory listings of a root, and their saved form. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/memory.h"
#include "../base/number.h"
#include "../base/text.h"
#include "root_internal.h"
#include "root_path.h"

#define GETDENTS_BUFFER (16u << 10)

/* Grows while it is filled; packed into one block of entries with their names behind them. */
struct item {
        size_t name_at;
        uint64_t inode;
        bool is_directory;
};
struct listing {
        struct item *items;
        size_t count, room;
        char *names;
        size_t names_length, names_room;
};

static void listing_release(struct listing *listing) {
        free(listing->items);
        free(listing->names);
}
#define cleanup_listing __attribute__((cleanup(listing_release)))

/* @array with space for @n more elements of @size: moved or not. NULL: out of memory, and @array still stands. */
static void *reserve(void *array, size_t used, size_t *room, size_t n, size_t size) {
        size_t more;
        void *grown;

        if (*room - used >= n)
                return array;
        more = (*room + n) * 2 + 32;
        grown = reallocarray(array, more, size);
        if (grown)
                *room = more;
        return grown;
}

static int listing_add(struct listing *listing, const char *name, size_t length, uint64_t inode,
                       bool is_directory) {
        struct item *items;
        char *names;

        if (listing->count == ROOT_LIST_MAX)
                return -EFBIG;
        items = reserve(listing->items, listing->count, &listing->room, 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        listing->items = items;
        names = reserve(listing->names, listing->names_length, &listing->names_room, length + 1, 1);
        if (!names)
                return -ENOMEM;
        listing->names = names;
        items[listing->count++] = (struct item){listing->names_length, inode, is_directory};
        memcpy(names + listing->names_length, name, length);
        names[listing->names_length + length] = '\0';
        listing->names_length += length + 1;
        return 0;
}

static int entry_compare(const void *a, const void *b) {
        const struct root_entry *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static int listing_pack(const struct listing *listing, struct root_entry **ret_entries, size_t *ret_count) {
        size_t head = listing->count * sizeof(struct root_entry);
        struct root_entry *entries = malloc(head + listing->names_length + 1);
        char *names;

        if (!entries)
                return -ENOMEM;
        names = (char *) entries + head;
        if (listing->names_length > 0)
                memcpy(names, listing->names, listing->names_length);
        for (size_t i = 0; i < listing->count; i++) {
                const struct item *item = &listing->items[i];

                entries[i] = (struct root_entry){names + item->name_at, item->inode, item->is_directory};
        }
        if (listing->count > 1)
                qsort(entries, listing->count, sizeof(*entries), entry_compare);
        *ret_entries = entries;
        *ret_count = listing->count;
        return 0;
}

/* --- the saved form --- */

/* "INODE NAME\n", "INODE NAME/\n" for a directory; a newline in a name is \012 and a backslash \134, as in mountinfo. */
static int parse_saved(const char *data, size_t length, struct listing *listing) {
        for (const char *line = data, *end = data + length, *next; line < end; line = next) {
                const char *stop = memchr(line, '\n', (size_t) (end - line)), *blank;
                char name[NAME_MAX + 1];
                size_t n = 0;
                bool is_directory;
                uint64_t inode;
                int r;

                next = stop ? stop + 1 : end;
                stop = stop ? stop : end;
                blank = memchr(line, ' ', (size_t) (stop - line));
                if (!blank || number_parse_u64_n(line, (size_t) (blank - line), &inode) < 0)
                        continue;
                is_directory = stop[-1] == '/';
                for (const char *p = blank + 1; p < stop - is_directory && n < NAME_MAX; p++) {
                        if (*p == '\\' && stop - p >= 4 && memcmp(p, "\\012", 4) == 0)
                                name[n++] = '\n', p += 3;
                        else if (*p == '\\' && stop - p >= 4 && memcmp(p, "\\134", 4) == 0)
                                name[n++] = '\\', p += 3;
                        else
                                name[n++] = *p;
                }
                /* What a kernel never lists may not come out of a file either: names are appended to paths. */
                if (n == 0 || memchr(name, '/', n) || memchr(name, '\0', n) || (n == 1 && name[0] == '.') ||
                    (n == 2 && name[0] == '.' && name[1] == '.'))
                        continue;
                r = listing_add(listing, name, n, inode, is_directory);
                if (r < 0)
                        return r;
        }
        return 0;
}

int root_parse_list(const char *data, size_t length, struct root_entry **ret_entries, size_t *ret_count) {
        cleanup_listing struct listing listing = {0};
        int r = parse_saved(data, length, &listing);

        return r < 0 ? r : listing_pack(&listing, ret_entries, ret_count);
}

void root_capture_list(struct root *root, const char *path, const struct root_entry *entries, size_t count) {
        struct text text;

        text_init(&text, ROOT_FILE_MAX);
        for (size_t i = 0; i < count; i++) {
                text_add(&text, "%" PRIu64 " ", entries[i].inode);
                for (const char *p = entries[i].name; *p; p++) {
                        if (*p == '\n' || *p == '\\')
                                text_add(&text, *p == '\n' ? "\\012" : "\\134");
                        else
                                text_add_n(&text, p, 1);
                }
                text_add(&text, entries[i].is_directory ? "/\n" : "\n");
        }
        if (text.cut)
                root->capture_failures++;
        root_capture_data(root, path, "/" ROOT_NAME_LIST, text_string(&text), text.length);
        text_release(&text);
}

/* --- reading --- */

static int add_kernel_names(int fd, struct listing *listing) {
        _Alignas(struct dirent64) char buffer[GETDENTS_BUFFER];

        for (;;) {
                ssize_t n = getdents64(fd, buffer, sizeof(buffer));

                if (n <= 0)
                        return n < 0 ? -errno : 0;
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *entry = (const struct dirent64 *) (buffer + at);
                        const char *name = entry->d_name;
                        bool is_directory = entry->d_type == DT_DIR;
                        int r;

                        at += entry->d_reclen;
                        if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
                                continue;
                        if (entry->d_type == DT_UNKNOWN) {
                                struct stat st;

                                is_directory = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                                               S_ISDIR(st.st_mode);
                        }
                        r = listing_add(listing, name, strlen(name), entry->d_ino, is_directory);
                        if (r < 0)
                                return r;
                }
        }
}

static int list_kernel(const struct root_dir *dir, struct root_entry **ret_entries, size_t *ret_count) {
        cleanup_listing struct listing listing = {0};
        int r = add_kernel_names(dir->fd, &listing);

        return r < 0 ? r : listing_pack(&listing, ret_entries, ret_count);
}

/* A folder made by hand has no ".list": what is there, less what only describes it. */
static int list_unsaved(const struct root_dir *dir, struct root_entry **ret_entries, size_t *ret_count) {
        cleanup_listing struct listing all = {0}, listing = {0};
        int r = add_kernel_names(dir->fd, &all);

        for (size_t i = 0; r >= 0 && i < all.count; i++) {
                const char *name = all.names + all.items[i].name_at;
                uint64_t inode = all.items[i].inode, device;
                char path[PATH_MAX];
                int length = snprintf(path, sizeof(path), "%s/%s", dir->path, name);

                if (root_is_sidecar(name))
                        continue;
                if (all.items[i].is_directory && length > 0 && (size_t) length < sizeof(path))
                        (void) root_replay_id(dir->root, path, &inode, &device);
                r = listing_add(&listing, name, strlen(name), inode, all.items[i].is_directory);
        }
        return r < 0 ? r : listing_pack(&listing, ret_entries, ret_count);
}

static int list_folder(const struct root_dir *dir, const char *path, struct root_entry **ret_entries,
                       size_t *ret_count) {
        cleanup_free char *saved = NULL;
        size_t length = 0;
        int r;

        if (root_read_sidecar(dir->root, path, "/" ROOT_NAME_LIST, &saved, &length) == 0)
                return root_parse_list(saved, length, ret_entries, ret_count);
        r = root_replay_error(dir->root, path);
        return r == -ENOENT ? list_unsaved(dir, ret_entries, ret_count) : r;
}

int root_dir_list(const struct root_dir *dir, struct root_entry **ret_entries, size_t *ret_count) {
        cleanup_free struct root_entry *entries = NULL;
        struct root *root = dir->root;
        char buffer[PATH_MAX];
        const char *path;
        size_t count = 0;
        int r = root_clean_path(dir->path, buffer, &path);

        if (r < 0)
                return r;
        r = root->live ? list_kernel(dir, &entries, &count) : list_folder(dir, path, &entries, &count);
        if (r < 0) {
                if (root_captures(root))
                        root_capture_error(root, path, r);
                return r == -ESRCH || r == -ENODEV ? -ENOENT : r;
        }
        if (root_captures(root))
                root_capture_list(root, path, entries, count);
        *ret_entries = take_ptr(entries);
        *ret_count = count;
        return 0;
}

int root_list(struct root *root, const char *path, char ***ret_names) {
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        cleanup_free struct root_entry *entries = NULL;
        size_t count = 0, bytes = 0, head;
        char **names, *text;
        int r;

        r = root_dir_open(root, path, &dir);
        if (r < 0)
                return r;
        r = root_dir_list(&dir, &entries, &count);
        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++)
                bytes += strlen(entries[i].name) + 1;
        head = (count + 1) * sizeof(*names);
        names = malloc(head + bytes);
        if (!names)
                return -ENOMEM;
        text = (char *) names + head;
        for (size_t i = 0; i < count; i++) {
                size_t length = strlen(entries[i].name) + 1;

                names[i] = memcpy(text, entries[i].name, length);
                text += length;
        }
        names[count] = NULL;
        *ret_names = names;
        return 0;
}

void root_names_free(char **names) {
        free(names);
}
