/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what can be measured here, what stands in the way, and what would change it. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/memory.h"
#include "command.h"
#include "doctor.h"
#include "sink.h"

#define OUTPUT_MAX ((size_t) 64 << 10)
#define PATIENCE_NS (30 * NS_PER_S)

static void print_text(const struct doctor_line *lines, size_t count, struct text *out) {
        static const char *const marks[DOCTOR_MARK_COUNT] = {
                        [DOCTOR_OK] = "ok",
                        [DOCTOR_NOTE] = "--",
                        [DOCTOR_FAULT] = "!!",
        };
        char escaped[2048];

        for (size_t i = 0; i < count; i++) {
                text_escape(escaped, sizeof(escaped), lines[i].text, strlen(lines[i].text));
                text_add(out, "%s  %-13s %s%s%s\n", marks[lines[i].mark], lines[i].id, escaped,
                         lines[i].remedy[0] ? " => " : "", lines[i].remedy);
        }
}

static void free_json(cJSON **json) {
        cJSON_Delete(*json);
}

static bool add_line(cJSON *checks, const struct doctor_line *line) {
        static const char *const marks[DOCTOR_MARK_COUNT] = {
                        [DOCTOR_OK] = "ok",
                        [DOCTOR_NOTE] = "note",
                        [DOCTOR_FAULT] = "fault",
        };
        cJSON *object = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(checks, object)) {
                cJSON_Delete(object);
                return false;
        }
        return cJSON_AddStringToObject(object, "id", line->id) &&
               cJSON_AddStringToObject(object, "status", marks[line->mark]) &&
               cJSON_AddStringToObject(object, "text", line->text) &&
               (!line->remedy[0] || cJSON_AddStringToObject(object, "remedy", line->remedy));
}

/* One object on one line, as reports are. */
static int print_json(const struct doctor_facts *facts, const struct doctor_line *lines, size_t count,
                      struct text *out) {
        cJSON *json __attribute__((cleanup(free_json))) = cJSON_CreateObject();
        cleanup_free char *printed = NULL;
        char time[CLOCK_TEXT_MAX];
        bool works = facts->probe.tried && !facts->probe.error;
        cJSON *checks;

        clock_format(time, clock_now().real_ns, 3);
        if (!json || !cJSON_AddNumberToObject(json, "schema", 1) ||
            !cJSON_AddStringToObject(json, "type", "doctor") ||
            !cJSON_AddStringToObject(json, "time", time) ||
            !cJSON_AddStringToObject(json, "version", command_version()) ||
            !cJSON_AddBoolToObject(json, "measurable", doctor_can_measure(facts)))
                return -ENOMEM;
        if (works && (!cJSON_AddStringToObject(json, "method", probe_method_name(facts->probe.method)) ||
                      !cJSON_AddBoolToObject(json, "exact", facts->probe.exact)))
                return -ENOMEM;
        checks = cJSON_AddArrayToObject(json, "checks");
        if (!checks)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                if (!add_line(checks, &lines[i]))
                        return -ENOMEM;
        printed = cJSON_PrintUnformatted(json);
        if (!printed)
                return -ENOMEM;
        text_add(out, "%s\n", printed);
        return 0;
}

static int deliver(const struct text *page) {
        struct sink *sink;
        int status = EXIT_FAILED;

        if (sink_new(STDOUT_FILENO, OUTPUT_MAX + 64, &sink) < 0)
                return status;
        (void) sink_write(sink, text_string(page), page->length);
        (void) sink_flush(sink, PATIENCE_NS, PATIENCE_NS, -1);
        if (sink_lost(sink) == 0)
                status = EXIT_OK;
        else
                (void) log_error(-EIO, "standard output is closed or too slow");
        sink_free(sink);
        return status;
}

static int run_doctor(const struct options *options, char **arguments) {
        struct doctor_line lines[DOCTOR_LINES_MAX];
        struct doctor_facts facts;
        struct root *root;
        struct text page;
        struct why why = {0};
        int r, status;
        size_t count;

        (void) arguments;
        r = root_open(options->root, &root, &why);
        if (r < 0) {
                (void) log_error(r, "%s", why.text);
                return EXIT_CANNOT_MEASURE;
        }
        doctor_read(root, options, &facts);
        root_free(root);
        count = doctor_judge(&facts, lines);
        text_init(&page, OUTPUT_MAX);
        if (options->output == FORM_JSON)
                r = print_json(&facts, lines, count, &page);
        else
                print_text(lines, count, &page);
        status = r < 0 ? log_error(EXIT_FAILED, "out of memory") : deliver(&page);
        text_release(&page);
        if (status == EXIT_OK && !doctor_can_measure(&facts))
                status = EXIT_CANNOT_MEASURE;
        return status;
}

const struct command command_doctor = {
                .name = "doctor",
                .arguments = "[OPTION...]",
                .summary = "what can be measured here, and what stands in the way",
                .description = "One line each: \"ok\" in order, \"--\" not there but not needed, \"!!\" "
                               "stands in the way; behind => what would change it. With --pid, also whether "
                               "that process may be looked at. Exit status 3: the target cannot be measured "
                               "in any way.",
                .statuses = COMMAND_STATUSES,
                .set = COMMAND_DOCTOR,
                .run = run_doctor,
};
