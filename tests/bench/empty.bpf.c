// SPDX-License-Identifier: GPL-2.0-only
/* The yardstick: programs that do nothing on the hooks that every tool of this kind uses. What they cost is the hook itself. */
#define SEC(name) __attribute__((section(name), used))

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int empty_switch(unsigned long long *ctx) {
        (void) ctx;
        return 0;
}

SEC("tp_btf/sched_wakeup")
int empty_wakeup(unsigned long long *ctx) {
        (void) ctx;
        return 0;
}
