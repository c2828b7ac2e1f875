/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/host/root.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../agent/base/absent.h"
#include "../../agent/host/root_internal.h"
#include "host_fixture.h"

static void expect_content(struct root *root, const char *path, const char *content) {
        cleanup_free char *data = NULL;
        size_t length;
        int r = root_read(root, path, ROOT_FILE_MAX, &data, &length);

        cr_assert(r == 0, "%s: %d", path, r);
        cr_expect_str_eq(data, content);
        cr_expect(length == strlen(content));
}

static void expect_error(struct root *root, const char *path, int error) {
        char *data = (char *) -1;
        int r = root_read(root, path, ROOT_FILE_MAX, &data, NULL);

        cr_expect(r == error, "%s: %d", path, r);
        cr_expect(data == (char *) -1, "an output is set only on success");
}

static void link_in(const struct fixture *fixture, const char *target, const char *name) {
        cr_assert(symlink(target, fixture_path(fixture, name)) == 0, "%s", name);
}

/* Every way of opening must hold, also where a container runtime's filter refuses openat2(). */
#define BOTH_WAYS(fixture) for (unsigned way_ = 0; way_ < 2; way_++, (fixture).root->has_openat2 = false)

Test(host_root, paths_are_taken_below_the_folder) {
        cleanup_fixture struct fixture fixture = {0};

        fixture_make(&fixture);
        fixture_write(&fixture, "etc/passwd", "inside");
        BOTH_WAYS(fixture) {
                expect_content(fixture.root, "/etc/passwd", "inside");
                expect_content(fixture.root, "//etc/./passwd", "inside");
                expect_content(fixture.root, "/../../etc/passwd", "inside");
                expect_content(fixture.root, "/etc/../../../../etc/passwd", "inside");
                expect_content(fixture.root, "/nope/../etc/passwd", "inside");
                expect_error(fixture.root, "/etc/shadow", -ENOENT);
                expect_error(fixture.root, "etc/passwd", -EINVAL);
                expect_error(fixture.root, "", -EINVAL);
                expect_error(fixture.root, "/etc/passwd/x", -ENOTDIR);
        }
}

Test(host_root, links_do_not_lead_out_of_the_folder) {
        cleanup_fixture struct fixture fixture = {0};

        fixture_make(&fixture);
        fixture_write(&fixture, "etc/hosts", "inside");
        link_in(&fixture, "/etc/hosts", "absolute");
        link_in(&fixture, "../../../../../../../../etc/hosts", "relative");
        link_in(&fixture, "/proc/self/environ", "outside");
        link_in(&fixture, "/", "top");
        link_in(&fixture, "loop", "loop");
        expect_content(fixture.root, "/absolute", "inside");
        expect_content(fixture.root, "/relative", "inside");
        expect_content(fixture.root, "/top/etc/hosts", "inside");
        expect_error(fixture.root, "/outside", -ENOENT);
        expect_error(fixture.root, "/loop", -ELOOP);
        /* Without openat2() no link is followed at all. */
        fixture.root->has_openat2 = false;
        expect_error(fixture.root, "/absolute", -EINVAL);
        expect_error(fixture.root, "/outside", -EINVAL);
        expect_error(fixture.root, "/top/etc/hosts", -ENOTDIR);
}

Test(host_root, only_regular_files_are_opened) {
        cleanup_fixture struct fixture fixture = {0};
        struct root_dir dir;
        char buffer[16];

        fixture_make(&fixture);
        cr_assert(mkfifo(fixture_path(&fixture, "d/pipe"), 0666) == 0);
        cr_assert(root_dir_open(fixture.root, "/d", &dir) == 0);
        BOTH_WAYS(fixture) {
                /* Opened as a reader would open it, this waits for ever. */
                expect_error(fixture.root, "/d/pipe", -EINVAL);
                expect_error(fixture.root, "/d", -EISDIR);
                cr_expect(root_dir_read(&dir, "pipe", buffer, sizeof(buffer)) == -EINVAL);
        }
        root_dir_close(&dir);
        if (mknod(fixture_path(&fixture, "d/zero"), S_IFCHR | 0666, makedev(1, 5)) == 0)
                expect_error(fixture.root, "/d/zero", -EINVAL);
}

Test(host_root, a_file_is_read_up_to_its_maximum) {
        cleanup_fixture struct fixture fixture = {0};
        static char data[20000];

        fixture_make(&fixture);
        memset(data, 'x', sizeof(data));
        for (size_t size = 0; size <= sizeof(data); size = size < 4090   ? 4090
                                                           : size < 4100 ? size + 1
                                                                         : size + 15900) {
                cleanup_free char *read = NULL;
                char *untouched = NULL;
                size_t length;

                fixture_write_n(&fixture, "file", data, size);
                cr_assert(root_read(fixture.root, "/file", size, &read, &length) == 0, "%zu", size);
                cr_expect(length == size && memcmp(read, data, size) == 0 && read[size] == '\0');
                if (size > 0)
                        cr_expect(root_read(fixture.root, "/file", size - 1, &untouched, NULL) == -EFBIG,
                                  "%zu", size);
        }
}

Test(host_root, a_listing_is_sorted_and_without_dots) {
        cleanup_fixture struct fixture fixture = {0};
        char **names = NULL;

        fixture_make(&fixture);
        fixture_write(&fixture, "d/b/x", "1");
        fixture_write(&fixture, "d/a", "1");
        fixture_write(&fixture, "d/.hidden", "1");
        fixture_write(&fixture, "d/new\nline", "1");
        cr_assert(root_list(fixture.root, "/d", &names) == 0);
        cr_expect_str_eq(names[0], ".hidden");
        cr_expect_str_eq(names[1], "a");
        cr_expect_str_eq(names[2], "b");
        cr_expect_str_eq(names[3], "new\nline");
        cr_expect(!names[4]);
        root_names_free(names);
        cr_expect(root_list(fixture.root, "/d/a", &names) == -ENOTDIR);
        cr_expect(root_list(fixture.root, "/nope", &names) == -ENOENT);
        root_names_free(NULL);
}

Test(host_root, a_folder_that_is_not_there_is_said) {
        struct why why = {0};
        struct root *root;

        cr_expect(root_open("/nonexistent/folder", &root, &why) == -ENOENT);
        cr_expect_str_eq(why.text, "root folder /nonexistent/folder: No such file or directory");
        cr_expect(root_open("/proc/self/status", &root, &why) == -ENOTDIR);
        root_free(NULL);
}

/* --- this machine --- */

Test(host_root, this_machines_files_are_read_to_their_end) {
        cleanup_fixture struct fixture fixture = {0};
        cleanup_free char *text = NULL, *target = NULL, *untouched = NULL;
        char expected[32];
        uint64_t inode, device;
        struct stat st;
        size_t length;

        fixture_open(&fixture, "/");
        cr_expect(root_is_live(fixture.root));
        cr_assert(root_read(fixture.root, "/proc/self/status", ROOT_FILE_MAX, &text, &length) == 0);
        cr_expect(length > 100 && strncmp(text, "Name:", 5) == 0, "files of /proc have the size 0");
        (void) snprintf(expected, sizeof(expected), "%d", getpid());
        cr_assert(root_read_link(fixture.root, "/proc/self", &target) == 0);
        cr_expect_str_eq(target, expected);
        cr_assert(stat("/proc/self/ns/pid", &st) == 0);
        cr_assert(root_id(fixture.root, "/proc/self/ns/pid", &inode, &device) == 0);
        cr_expect(inode == st.st_ino && device == st.st_dev);
        cr_expect(root_read(fixture.root, "/proc/self/status", 10, &untouched, NULL) == -EFBIG);
        expect_error(fixture.root, "/proc/0/status", -ENOENT);
        expect_error(fixture.root, "/dev/null", -EINVAL);
}

Test(host_root, a_process_root_is_followed_and_its_program_read) {
        cleanup_fixture struct fixture fixture = {0};
        cleanup_free char *through = NULL, *direct = NULL, *program = NULL;
        char path[64];
        char **names;

        fixture_open(&fixture, NULL);
        (void) snprintf(path, sizeof(path), "/proc/%d/root/proc/version", getpid());
        cr_assert(root_read(fixture.root, path, ROOT_FILE_MAX, &through, NULL) == 0);
        cr_assert(root_read(fixture.root, "/proc/version", ROOT_FILE_MAX, &direct, NULL) == 0);
        cr_expect_str_eq(through, direct);
        cr_assert(root_list(fixture.root, "/proc/self/root", &names) == 0);
        cr_expect(names[0]);
        root_names_free(names);
        cr_assert(root_read(fixture.root, "/proc/self/exe", ROOT_FILE_MAX, &program, NULL) == 0);
        cr_expect(memcmp(program, "\177ELF", 4) == 0);
}

/* A child in a root of its own, with what a hostile container could put there. */
static pid_t start_in(const char *directory) {
        pid_t pid = fork();

        if (pid == 0) {
                /* Stopped for ever if a claim of the test does not hold: then it goes with the test. */
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chroot(directory) < 0 || chdir("/") < 0)
                        _exit(1);
                raise(SIGSTOP);
                _exit(0);
        }
        return pid;
}

Test(host_root, a_containers_links_lead_nowhere_but_into_the_container) {
        cleanup_fixture struct fixture fixture = {0}, container = {0};
        char path[64], buffer[64];
        struct root_dir dir;
        int status;
        pid_t pid;

        fixture_open(&fixture, NULL);
        fixture_make(&container);
        fixture_write(&container, "etc/inside", "theirs");
        link_in(&container, "/etc/inside", "sys/good");
        link_in(&container, "/etc/passwd", "sys/bad");
        link_in(&container, "/proc/self/environ", "sys/secret");
        cr_assert(mkfifo(fixture_path(&container, "sys/pipe"), 0666) == 0);
        pid = start_in(container.directory);
        cr_assert(pid > 0 && waitpid(pid, &status, WUNTRACED) == pid);
        if (!WIFSTOPPED(status))
                cr_skip_test("chroot is not allowed here");
        for (unsigned way = 0; way < 2; way++, fixture.root->has_openat2 = false) {
                (void) snprintf(path, sizeof(path), "/proc/%d/root/etc/inside", pid);
                expect_content(fixture.root, path, "theirs");
                (void) snprintf(path, sizeof(path), "/proc/%d/cwd/etc/inside", pid);
                expect_content(fixture.root, path, "theirs");
                (void) snprintf(path, sizeof(path), "/proc/%d/root/../../etc/inside", pid);
                expect_error(fixture.root, path, -ENOENT); /* cleaned by text: /proc/etc/inside */
                (void) snprintf(path, sizeof(path), "/proc/%d/root/sys/bad", pid);
                expect_error(fixture.root, path, way == 0 ? -ENOENT : -EINVAL);
                (void) snprintf(path, sizeof(path), "/proc/%d/root/sys/secret", pid);
                expect_error(fixture.root, path, way == 0 ? -ENOENT : -EINVAL);
                (void) snprintf(path, sizeof(path), "/proc/%d/root/sys/pipe", pid);
                expect_error(fixture.root, path, -EINVAL);
                (void) snprintf(path, sizeof(path), "/proc/%d/root/sys", pid);
                cr_assert(root_dir_open(fixture.root, path, &dir) == 0);
                cr_expect(root_dir_read(&dir, "pipe", buffer, sizeof(buffer)) == -EINVAL);
                cr_expect(root_dir_read(&dir, "bad", buffer, sizeof(buffer)) < 0);
                root_dir_close(&dir);
        }
        fixture.root->has_openat2 = true;
        (void) snprintf(path, sizeof(path), "/proc/%d/root/sys/good", pid);
        expect_content(fixture.root, path, "theirs");
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, &status, 0);
}

/* --- capture and replay --- */

static void make_source(struct fixture *fixture) {
        fixture_make(fixture);
        fixture_write(fixture, "proc/12/cgroup", "0::/x\n");
        fixture_write(fixture, "proc/12/environ", "PASSWORD=hunter2");
        fixture_write(fixture, "proc/12/exe", "ELF");
        fixture_write_n(fixture, "d/back\\slash", "", 0);
        fixture_write_n(fixture, "d/new\nline", "", 0);
        fixture_write_n(fixture, "d/sub/file", "", 0);
        fixture_write(fixture, "closed.errno", "%d\n", EACCES);
        fixture_write(fixture, "big", "0123456789");
        link_in(fixture, "/usr/bin/app", "proc/12/exe.real");
}

Test(host_root, what_is_captured_replays_the_same) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};
        uint64_t inode, device, replayed_inode, replayed_device;
        char *data = NULL, *target = NULL;
        char **names = NULL;

        make_source(&fixture);
        fixture_make(&copy);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        expect_content(fixture.root, "/proc/12/cgroup", "0::/x\n");
        expect_content(fixture.root, "/proc/12/exe", "ELF");
        cr_assert(root_read_link(fixture.root, "/proc/12/exe.real", &target) == 0);
        free(target);
        expect_error(fixture.root, "/closed", -EACCES);
        expect_error(fixture.root, "/gone", -ENOENT);
        cr_expect(root_read(fixture.root, "/big", 3, &data, NULL) == -EFBIG);
        cr_assert(root_list(fixture.root, "/d", &names) == 0);
        root_names_free(names);
        cr_assert(root_id(fixture.root, "/d/sub", &inode, &device) == 0);
        cr_expect(root_capture_failures(fixture.root) == 0);
        root_capture_stop(fixture.root);
        expect_content(fixture.root, "/d/sub/file", "");

        expect_content(copy.root, "/proc/12/cgroup", "0::/x\n");
        expect_content(copy.root, "/proc/12/exe", "ELF");
        cr_assert(root_read_link(copy.root, "/proc/12/exe.real", &target) == 0);
        cr_expect_str_eq(target, "/usr/bin/app");
        free(target);
        expect_error(copy.root, "/closed", -EACCES);
        expect_error(copy.root, "/gone", -ENOENT);
        expect_error(copy.root, "/big", -EFBIG);
        expect_error(copy.root, "/d/sub/file", -ENOENT); /* read after the capture ended */
        cr_assert(root_list(copy.root, "/d", &names) == 0);
        cr_expect_str_eq(names[0], "back\\slash");
        cr_expect_str_eq(names[1], "new\nline");
        cr_expect_str_eq(names[2], "sub");
        cr_expect(!names[3]);
        root_names_free(names);
        cr_assert(root_id(copy.root, "/d/sub", &replayed_inode, &replayed_device) == 0);
        cr_expect(replayed_inode == inode);
}

Test(host_root, an_environment_is_not_captured_but_what_its_reader_keeps) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};

        make_source(&fixture);
        fixture_make(&copy);
        root_capture_file(fixture.root, "/proc/12/environ", "x", 1); /* not capturing: nothing happens */
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        expect_content(fixture.root, "/proc/12/environ", "PASSWORD=hunter2");
        expect_error(copy.root, "/proc/12/environ", -ENOENT);
        root_capture_file(fixture.root, "/proc/12/environ", "GOMAXPROCS=2", 12);
        expect_content(copy.root, "/proc/12/environ", "GOMAXPROCS=2");
}

Test(host_root, the_last_reading_of_a_path_is_the_one_that_replays) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};

        fixture_make(&fixture);
        fixture_make(&copy);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        fixture_write(&fixture, "file.errno", "%d\n", EIO);
        expect_error(fixture.root, "/file", -EIO);
        fixture_write(&fixture, "file", "now");
        expect_content(fixture.root, "/file", "now");
        expect_content(copy.root, "/file", "now");
        cr_assert(remove(fixture_path(&fixture, "file")) == 0);
        expect_error(fixture.root, "/file", -EIO);
        expect_error(copy.root, "/file", -EIO);
        cr_assert(remove(fixture_path(&fixture, "file.errno")) == 0);
        fixture_write(&fixture, "file", "now");
        expect_content(fixture.root, "/file", "now");
        cr_assert(remove(fixture_path(&fixture, "file")) == 0);
        expect_error(fixture.root, "/file", -ENOENT);
        expect_error(copy.root, "/file", -ENOENT);
}

Test(host_root, captured_links_of_the_kernel_replay_beside_their_files) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};
        cleanup_free char *target = NULL, *replayed = NULL, *program = NULL, *copied = NULL;
        uint64_t inode, device, replayed_inode, replayed_device;
        size_t length, copied_length;

        fixture_open(&fixture, NULL);
        fixture_make(&copy);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        cr_assert(root_read_link(fixture.root, "/proc/self/exe", &target) == 0);
        cr_assert(root_read(fixture.root, "/proc/self/exe", ROOT_FILE_MAX, &program, &length) == 0);
        cr_assert(root_id(fixture.root, "/proc/self/ns/pid", &inode, &device) == 0);
        cr_expect(!root_is_live(copy.root));
        cr_assert(root_read_link(copy.root, "/proc/self/exe", &replayed) == 0);
        cr_expect_str_eq(target, replayed);
        cr_assert(root_read(copy.root, "/proc/self/exe", ROOT_FILE_MAX, &copied, &copied_length) == 0);
        cr_expect(copied_length == length && memcmp(copied, program, length) == 0);
        cr_assert(root_id(copy.root, "/proc/self/ns/pid", &replayed_inode, &replayed_device) == 0);
        cr_expect(replayed_inode == inode && replayed_device == device);
}

Test(host_root, what_can_not_be_saved_is_counted_and_still_read) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};

        fixture_make(&fixture);
        fixture_write(&fixture, "a/b", "read");
        fixture_make(&copy);
        fixture_write(&copy, "a", "in the way");
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        expect_content(fixture.root, "/a/b", "read");
        cr_expect(root_capture_failures(fixture.root) == 1);
        cr_expect(root_capture_to(fixture.root, "/nonexistent/folder", &fixture.why) == -ENOENT);
        cr_expect(strstr(fixture.why.text, "/nonexistent/folder"), "%s", fixture.why.text);
}

Test(host_root, a_folder_made_by_hand_hides_its_sidecars) {
        cleanup_fixture struct fixture fixture = {0};
        char **names = NULL;
        uint64_t inode, device;

        fixture_make(&fixture);
        fixture_write(&fixture, "d/a.id", "77 5\n");
        fixture_write(&fixture, "d/a/x", "1");
        fixture_write(&fixture, "d/b.errno", "13\n");
        fixture_write(&fixture, "d/c.link", "/x");
        cr_assert(root_list(fixture.root, "/d", &names) == 0);
        cr_expect_str_eq(names[0], "a");
        cr_expect(!names[1]);
        root_names_free(names);
        cr_assert(root_id(fixture.root, "/d/a", &inode, &device) == 0);
        cr_expect(inode == 77 && device == 5);
        cr_assert(root_id(fixture.root, "/d", &inode, &device) == 0);
        cr_expect(device == ABSENT, "the device of the folder says nothing about the machine");
}

Test(host_root, a_folders_own_listing_cannot_name_a_way_out) {
        static const char list[] = "1 ../evil\n2 ..\n3 .\n4 a/b/\n5 \n6\nx y\n7 ok\n8 d/\n9 sl\\134ash\n";
        cleanup_fixture struct fixture fixture = {0};
        char **names = NULL;

        fixture_make(&fixture);
        fixture_write_n(&fixture, "d/.list", list, sizeof(list) - 1);
        cr_assert(root_list(fixture.root, "/d", &names) == 0);
        cr_expect_str_eq(names[0], "d");
        cr_expect_str_eq(names[1], "ok");
        cr_expect_str_eq(names[2], "sl\\ash");
        cr_expect(!names[3]);
        root_names_free(names);
}

Test(host_root, malformed_sidecars_say_nothing) {
        static const char notes[][24] = {"", "0\n", "-13\n", "99999\n", "13 13\n", "x"};
        cleanup_fixture struct fixture fixture = {0};
        uint64_t inode, device;

        fixture_make(&fixture);
        fixture_write(&fixture, "d/x", "1");
        for (size_t i = 0; i < ELEMENTS(notes); i++) {
                fixture_write_n(&fixture, "file.errno", notes[i], strlen(notes[i]));
                expect_error(fixture.root, "/file", -ENOENT);
                fixture_write_n(&fixture, "d.id", notes[i], strlen(notes[i]));
                cr_assert(root_id(fixture.root, "/d", &inode, &device) == 0);
                cr_expect(device == ABSENT || (inode == 13 && device == 13), "row %zu", i);
        }
}
