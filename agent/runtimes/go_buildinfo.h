/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What Go's linker writes into every program about how it was built (debug/buildinfo of Go's library reads the same). Only the inline
 * form, Go 1.18 and later: before it, the text lay behind pointers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"
#include "elf_image.h"

#define GO_BUILD_MAX (1u << 20)       /* bytes of build info that are looked at */
#define GO_BUILD_SCAN_MAX (16u << 20) /* bytes of a writable segment that are searched for it */

/* Strings of the arena, NULL where it does not say. */
struct go_build {
        const char *version;      /* "go1.27.3" */
        const char *path;         /* of the main package: "github.com/coredns/coredns" */
        const char *automaxprocs; /* version of that dependency, "v1.6.0" */
        const char *godebug; /* DefaultGODEBUG: settings that go.mod's language or //go:debug lines turn */
};

/* @data begins with the mark. 0; -ENOEXEC: no build info, or not of this form; -ENOMEM. */
int go_build_parse(const uint8_t *data, size_t length, struct arena *arena, struct go_build *ret_build);
/* 0; -ENOEXEC: not a program of Go 1.18 or later with its build info; -ENOMEM; other negative errno. */
int go_build_read(const struct elf_image *image, struct arena *arena, struct go_build *ret_build);

/* 27 for "go1.27.3" or "devel go1.27-abc"; ABSENT: none of that form. @version may be NULL. */
uint64_t go_build_minor(const char *version);
/* The value of @name in "a=1,b=0", the last one counts: 0 or 1; -1: not set, or no number of that kind. @settings may be NULL. */
int go_debug_setting(const char *settings, const char *name);
