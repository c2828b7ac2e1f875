/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The flags of a HotSpot JVM as they are in its memory. The JVM describes its own structures to debuggers in tables that libjvm.so exports
 * (gHotSpotVMStructs, gHotSpotVMTypes), stripped or not: nothing here depends on a release's layout.
 */
#include "process.h"

enum jvm_flag {
        JVM_ACTIVE_PROCESSOR_COUNT,
        JVM_PARALLEL_GC_THREADS,
        JVM_USE_CONTAINER_SUPPORT,
        JVM_USE_G1_GC,
        JVM_USE_PARALLEL_GC,
        JVM_FLAG_COUNT,
};

/* Who has set a flag: JVMFlagOrigin of HotSpot, the low four bits of a flag's _flags. */
enum jvm_origin {
        JVM_FROM_DEFAULT = 0,
        JVM_FROM_COMMAND_LINE = 1,
        JVM_FROM_ENVIRONMENT = 2,
        JVM_FROM_CONFIG_FILE = 3,
        JVM_FROM_ERGONOMICS = 5,
};

struct jvm_flags {
        struct {
                bool exists; /* this release has a flag of that name */
                int32_t value;
                unsigned origin;
        } flags[JVM_FLAG_COUNT];
        const char *version;    /* "17.0.21", "8u392"; NULL: not said */
        unsigned major, update; /* 17, 21: of 17.0.21; 8, 392: of 8u392 */
};

/* @library: the mapping of libjvm.so. 0; -ENODATA: it holds no such tables (yet); other negative errno. */
int jvm_flags_read(struct process *process, const struct process_mapping *library, struct arena *arena,
                   struct jvm_flags *ret_flags);
