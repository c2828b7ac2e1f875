/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions that no source of the agent may name: unbounded writes, parsers that swallow errors, calls with static
 * buffers, and calls that block. The Makefile puts this in front of every agent source. The headers that declare or use
 * the names come first, because a poisoned name may not even be declared (the kernel's BPF header lists helpers of
 * the same names).
 */
#include <linux/bpf.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#pragma GCC poison strcpy stpcpy strcat strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof strtol strtoul strtoll strtoull sscanf fscanf scanf vsscanf
#pragma GCC poison gmtime localtime ctime asctime
#pragma GCC poison sleep usleep
#pragma GCC poison system popen tmpnam mktemp
