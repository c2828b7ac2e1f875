/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A capture is a folder: throttlescope-capture.json (the manifest) and for each tick a folder tick-NNN, laid out like a host's root,
 * with every file that was read, and maps.json if the method drained something. Written with --capture, replayed with --root.
 * Whatever is read back is foreign text: bug reports come from anywhere.
 */
#include "probe.h"

#define CAPTURE_MANIFEST "throttlescope-capture.json"
#define CAPTURE_SCHEMA 1
#define CAPTURE_TICKS_MAX 1000u /* then the capture ends; the probe goes on and says so */
#define CAPTURE_MANIFEST_MAX (1u << 20)

struct capture_tick {
        unsigned number; /* of the folder; ascending */
        struct instant at;
};

struct capture_manifest {
        char version[32]; /* of the program that wrote it */
        enum probe_method method;
        bool forced;                  /* --method was given */
        bool exact;                   /* for people; a replay finds out itself */
        struct target_request target; /* cgroup is owned here */
        char *cgroup;
        uint64_t warn_stall_ns;
        size_t threads_max;
        struct probe_trial trials[PROBE_METHOD_COUNT];
        char kernel[128], hostname[128]; /* for people, of the first tick */
        unsigned cpus_online;
        struct capture_tick *ticks; /* time ascending */
        size_t ticks_count;
};

void capture_manifest_release(struct capture_manifest *manifest);
#define cleanup_manifest __attribute__((cleanup(capture_manifest_release)))
/* The caller releases. -EINVAL with the position (line or field) and a sentence, -ENOMEM. @data needs no NUL. */
int capture_manifest_parse(const char *data, size_t length, struct capture_manifest *ret_manifest,
                           struct why *why);
/* JSON text; the caller frees. -ENOMEM. */
int capture_manifest_format(const struct capture_manifest *manifest, char **ret_text);

/* ---- writing ---- */

struct capture;

/* Makes @directory if needed. -EEXIST: it holds a capture already. */
int capture_new(const char *directory, const struct probe_options *options, enum probe_method method,
                const struct probe_trial trials[static PROBE_METHOD_COUNT], struct capture **ret_capture,
                struct why *why);
void capture_free(struct capture *capture);
/* The next tick's folder: from now on everything read through @root is saved there. -EMFILE: CAPTURE_TICKS_MAX are there. */
int capture_begin(struct capture *capture, struct root *root, const char **ret_directory, struct why *why);
/* Enters the tick into the manifest. Reading through the root is saved on, until the next capture_begin(). */
int capture_commit(struct capture *capture, const struct snapshot *snapshot, struct why *why);

/* ---- reading ---- */

/* 0 and a manifest to release; -ENOENT: no capture; other negative errno with a sentence that names the file. */
int capture_manifest_read(struct root *root, struct capture_manifest *ret_manifest, struct why *why);
/* The root of one tick; the caller frees. */
int capture_tick_root(struct root *root, unsigned number, struct root **ret_root, struct why *why);

/*
 * The root that the last snapshot was read through: in a replay the tick's folder (valid until the next probe_read()), else the
 * probe's own. Readers beside the probe (runtimes/) take this one, so that what they read is captured and replayed as well.
 */
struct root *probe_root(const struct probe *probe);
