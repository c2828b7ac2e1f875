/* SPDX-License-Identifier: Apache-2.0 */
#include "json_parallelism.h"

#include "rows.h"
#include "text_parts.h"

static cJSON *row_object(struct build *build, const struct parallelism_facts *facts) {
        const struct parallelism *row = facts->row;
        cJSON *object = build_object(build);
        build_sentence(build, object, "runtime", row->runtime);
        build_name(build, object, "program", row->program, PARTS_ALL);
        build_name(build, object, "version", row->version, PARTS_ALL);
        build_id(build, object, "pid", row->pid);
        build_id(build, object, "host_pid", row->host_pid);
        build_name(build, object, "setting", row->setting, PARTS_ALL);
        build_u64(build, object, "effective", row->effective);
        build_sentence(build, object, "unit", row->unit == UNIT_PROCESSES ? "processes" : "threads");
        build_u64(build, object, "configured", row->configured);
        build_sentence(build, object, "source", parallelism_source_name(row->source));
        build_name(build, object, "source_detail", row->source_detail, PARTS_ALL);
        build_u64(build, object, "recommended", facts->recommended);
        build_sentence(build, object, "how", facts->how);
        if (row->aware != AWARENESS_UNKNOWN)
                build_bool(build, object, "aware", row->aware == AWARENESS_QUOTA);
        build_bool(build, object, "follows", row->follows);
        build_bool(build, object, "blocking", row->is_blocking);
        build_bool(build, object, "spins", row->spins);
        build_u64(build, object, "surplus", facts->surplus);
        build_u64(build, object, "surplus_memory_bytes", facts->surplus_memory_bytes);
        build_u64(build, object, "active", row->active);
        build_u64(build, object, "leaving", row->leaving);
        build_sentence(build, object, "unreadable", row->unreadable);
        return object;
}

void json_parallelism(struct build *build, cJSON *root, const struct facts *facts, size_t shown) {
        const struct parallelism_facts *rows[PARALLELISM_MAX];
        if (!facts->parallelism)
                return;
        size_t count = rows_in_order(facts, rows);
        if (shown > count)
                shown = count;
        cJSON *array = build_array(build);
        for (size_t i = 0; i < shown; i++)
                build_append(build, array, row_object(build, rows[i]));
        build_attach(build, root, "parallelism", array);
        uint64_t omitted = facts->parallelism_omitted + (facts->parallelism_count - shown);
        if (omitted > 0)
                build_u64(build, root, "parallelism_omitted", omitted);
}
