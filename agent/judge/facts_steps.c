/* SPDX-License-Identifier: Apache-2.0 */
/* Where a quota puts steps into latency. */
#include "facts.h"
#include "ratio.h"

/*
 * With k threads on CPU a quota of q is spent after q / k. Who comes at that moment waits for the rest of the period, P - q / k; who is not
 * served from that refill either, a period longer; and so on: j * P - q / k. So many refills as the largest bursts take are waited for at
 * most. Burst credit is spent before the first stall.
 */
size_t facts_latency_steps(const struct facts *facts, uint64_t ret_steps[static FACTS_STEPS_MAX]) {
        uint64_t burst_ns = facts->burst_cpu_p99_ns, at_once = facts->runnable_p99;

        if (!facts->has_limit || known_or_zero(facts->stall_count) == 0 || !is_known(facts->quota_ns) ||
            !is_known(facts->period_ns) || facts->quota_ns == 0 || !is_known(burst_ns) || !is_known(at_once))
                return 0;
        if (facts->cpus_online > 0 && at_once > facts->cpus_online)
                at_once = facts->cpus_online;
        /* While nobody was held it was one at a time: more of them are those that piled up behind a stall. */
        if (is_known(facts->unstalled_milli) && facts->unstalled_milli < FACTS_SERIAL_MILLI)
                at_once = 1;
        uint64_t spent_ns = (facts->quota_ns + known_or_zero(facts->burst_ns)) / (at_once > 0 ? at_once : 1);
        if (spent_ns >= facts->period_ns)
                return 0;
        uint64_t refills = (burst_ns + facts->quota_ns - 1) / facts->quota_ns;
        size_t count = 0;

        while (count < FACTS_STEPS_MAX && count < refills) {
                count++;
                ret_steps[count - 1] = ratio_scale(facts->period_ns, count, 1) - spent_ns;
        }
        return count;
}
