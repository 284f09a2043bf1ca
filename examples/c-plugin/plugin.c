/* An extension in C: tools that return the length of their arguments and say how far they are, answer with a picture, and
 * ask the agent's model; a middleware that numbers the other answers, and one that explains the numbers to the model. */
#include "goondan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The record, which is read without running the library ----------------------------------------------------- */

#define TOOL "{\"name\":\"c__length\",\"description\":\"Returns the length of its arguments.\",\"effect\":\"read\""
#define ASK "{\"name\":\"c__ask\",\"description\":\"Asks the model for a title.\""
#define DOT "{\"name\":\"c__dot\",\"description\":\"Returns a picture.\",\"effect\":\"read\""
#define RECORD                                                                                                        \
    "{\"apiVersion\":\"goondan.ai/v1\",\"package\":\"c-plugin\",\"version\":\"1.0.0\",\"name\":\"c-plugin\","         \
    "\"description\":\"An extension in C.\","                                                                         \
    "\"middlewares\":[{\"kind\":\"toolCall\",\"function\":\"number\",\"priority\":0},"                               \
    "{\"kind\":\"step\",\"function\":\"explain\",\"priority\":0}],"                                                 \
    "\"tools\":[" TOOL "}," DOT "}," ASK "}],\"subscriptions\":[],\"requires\":[]}"
#define LENGTH (sizeof RECORD - 1)

static const struct {
    uint8_t length[4];
    char json[LENGTH];
} record __attribute__((section(".goondan"), used, aligned(1))) = {
    {LENGTH & 0xff, LENGTH >> 8 & 0xff, LENGTH >> 16 & 0xff, LENGTH >> 24 & 0xff}, RECORD};

static const goondan_host_table *host;

static goondan_text text(const char *literal) {
    return (goondan_text){(const uint8_t *)literal, strlen(literal)};
}

/* A buffer over static bytes, which are never freed. */
static goondan_buffer fixed(const char *literal) {
    return (goondan_buffer){(void *)literal, strlen(literal), 0, NULL};
}

static void free_buffer(goondan_buffer buffer) {
    if (buffer.free != NULL) {
        buffer.free(buffer.data, buffer.len, buffer.extra);
    }
}

static void free_bytes(void *data, size_t len, size_t extra) {
    (void)len;
    (void)extra;
    free(data);
}

static const char NO_MEMORY[] = "{\"code\":\"E_EXT_RUNTIME\",\"message\":\"there is no memory left\"}";

/* ---- A future that is ready ------------------------------------------------------------------------------------ */

typedef struct {
    int32_t status;
    goondan_buffer buffer;
} ready_result;

/* `data` is null if there was no memory for it. */
static int32_t ready_poll(void *data, const goondan_waker *waker, goondan_buffer *output) {
    (void)waker;
    ready_result *result = data;
    if (result == NULL) {
        *output = fixed(NO_MEMORY);
        return GOONDAN_FAILED;
    }
    *output = result->buffer;
    result->buffer = fixed(""); /* The host owns the buffer now. */
    return result->status;
}

static void ready_drop(void *data) {
    ready_result *result = data;
    if (result != NULL) {
        free_buffer(result->buffer);
        free(result);
    }
}

static const goondan_future_table READY = {sizeof READY, ready_poll, ready_drop};

static goondan_future ready(int32_t status, goondan_buffer buffer) {
    ready_result *result = malloc(sizeof *result);
    if (result == NULL) {
        free_buffer(buffer);
    } else {
        *result = (ready_result){status, buffer};
    }
    return (goondan_future){result, &READY};
}

/* ---- The tools ------------------------------------------------------------------------------------------------- */

static void nothing(void *data) {
    (void)data;
}

static goondan_future length_call(void *data, const void *call, goondan_text input) {
    (void)data;
    char *json = malloc(32);
    if (json == NULL) {
        return ready(GOONDAN_FAILED, fixed(NO_MEMORY));
    }
    const double total = (double)input.len;
    host->run_progress(call, total, &total, text("counted"));
    int written = snprintf(json, 32, "{\"bytes\":%zu}", input.len);
    return ready(GOONDAN_OK, (goondan_buffer){json, (size_t)written, 0, free_bytes});
}

static const goondan_object_table LENGTH_TOOL = {sizeof LENGTH_TOOL, length_call, nothing, NULL};

/* A reply in JSON: a text and a file. The mark in `extra` says that it is not the answer itself. */
static const char REPLY[] =
    "{\"output\":{\"type\":\"content\",\"value\":["
    "{\"type\":\"text\",\"text\":\"A dot:\"},"
    "{\"type\":\"file\",\"mediaType\":\"image/gif\",\"name\":\"dot.gif\",\"url\":"
    "\"data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==\"}]}}";

static goondan_future dot_call(void *data, const void *call, goondan_text input) {
    (void)data;
    (void)call;
    (void)input;
    return ready(GOONDAN_OK, (goondan_buffer){(void *)REPLY, sizeof REPLY - 1, GOONDAN_REPLY, NULL});
}

static const goondan_object_table DOT_TOOL = {sizeof DOT_TOOL, dot_call, nothing, NULL};

/* A model request: `model` instead of the `target` of a request to an agent. The future of the host is that of the tool,
 * so the tool answers with the JSON of the host: `{"model":{},"response":"...","usage":{...}}`. */
static const char REQUEST[] =
    "{\"model\":{},\"system\":\"Answer with a title.\",\"options\":{\"temperature\":0},"
    "\"input\":\"Bread is baked from dough.\",\"timeout\":{\"secs\":30,\"nanos\":0}}";

static goondan_future ask_call(void *data, const void *call, goondan_text input) {
    (void)data;
    (void)input;
    return host->run_request(call, text(REQUEST));
}

static const goondan_object_table ASK_TOOL = {sizeof ASK_TOOL, ask_call, nothing, NULL};

/* ---- The middlewares ------------------------------------------------------------------------------------------- */

/* The future of one run: it awaits the rest of the chain, then changes its result. */
typedef struct {
    goondan_future next;
    atomic_uint *calls;
} number_run;

/* Replaces the outcome by `{"output": {"call": <number>, "was": <outcome>}}`, unless it is a reply with files. */
static int32_t number_outcome(number_run *run, goondan_buffer handle, goondan_buffer *error) {
    goondan_buffer was = fixed("");
    int32_t status = host->result_read((uint32_t)handle.len, handle.data, text("reply"), &was);
    if (status == GOONDAN_OK && (was.len != 4 || memcmp(was.data, "null", 4) != 0)) {
        free_buffer(was);
        return GOONDAN_OK;
    }
    if (status == GOONDAN_OK) {
        free_buffer(was);
        status = host->result_read((uint32_t)handle.len, handle.data, text("outcome"), &was);
    }
    if (status != GOONDAN_OK) {
        *error = was;
        return status;
    }
    size_t capacity = was.len + 64;
    char *json = malloc(capacity);
    if (json == NULL) {
        *error = fixed(NO_MEMORY);
        status = GOONDAN_FAILED;
    } else {
        unsigned call = atomic_fetch_add(run->calls, 1) + 1;
        int written =
            snprintf(json, capacity, "{\"output\":{\"call\":%u,\"was\":%.*s}}", call, (int)was.len, (char *)was.data);
        goondan_text outcome = {(uint8_t *)json, (size_t)written};
        status = host->result_write((uint32_t)handle.len, handle.data, text("outcome"), outcome, error);
        free(json);
    }
    free_buffer(was);
    return status;
}

static int32_t number_poll(void *data, const goondan_waker *waker, goondan_buffer *output) {
    number_run *run = data;
    /* The waker is passed on: if the rest of the chain is pending, it wakes the host. */
    int32_t status = run->next.table->poll(run->next.data, waker, output);
    if (status != GOONDAN_OK) {
        return status;
    }
    goondan_buffer handle = *output;
    goondan_buffer error = fixed("");
    status = number_outcome(run, handle, &error);
    if (status == GOONDAN_OK) {
        free_buffer(error);
        return GOONDAN_OK; /* `output` still holds the handle. */
    }
    host->result_release((uint32_t)handle.len, handle.data);
    *output = error;
    return status;
}

static void number_drop(void *data) {
    number_run *run = data;
    run->next.table->drop(run->next.data);
    free(run);
}

static const goondan_future_table NUMBER_RUN = {sizeof NUMBER_RUN, number_poll, number_drop};

static goondan_future number_call(void *data, const void *call, goondan_text input) {
    (void)input;
    number_run *run = malloc(sizeof *run);
    if (run == NULL) {
        return ready(GOONDAN_FAILED, fixed(NO_MEMORY));
    }
    /* The future of the rest does nothing until it is polled. */
    *run = (number_run){host->run_next(call), data};
    return (goondan_future){run, &NUMBER_RUN};
}

static const goondan_object_table NUMBER = {sizeof NUMBER, number_call, free, NULL};

/* A message event. The conversation does not keep the message: the model is sent it in this step alone. */
static const char EXPLANATION[] =
    "{\"type\":\"append\",\"message\":{\"id\":\"c-explanation\",\"createdAt\":\"2026-01-01T00:00:00Z\","
    "\"source\":{\"type\":\"system\"},"
    "\"data\":{\"role\":\"system\",\"content\":\"The answers of tools are numbered.\"}}}";

static goondan_future explain_call(void *data, const void *call, goondan_text input) {
    (void)data;
    (void)input;
    goondan_buffer error = fixed("");
    int32_t status = host->run_write(call, text("project"), text(EXPLANATION), &error);
    if (status != GOONDAN_OK) {
        return ready(status, error); /* A host of ABI 1.0 has no such field. */
    }
    free_buffer(error);
    return host->run_next(call);
}

static const goondan_object_table EXPLAIN = {sizeof EXPLAIN, explain_call, nothing, NULL};

/* ---- The extension --------------------------------------------------------------------------------------------- */

static int32_t add(const void *handle, uint32_t kind, const char *what, goondan_object object, goondan_buffer *error) {
    goondan_registration registration = {sizeof registration, kind, 0, text(what), object};
    int32_t status = host->extension_register(handle, &registration, error);
    if (status == GOONDAN_OK) {
        free_buffer(*error);
        *error = fixed("");
    }
    return status;
}

/* Logs where the extension runs, and where it could keep files. */
static void log_info(const void *handle) {
    goondan_buffer info = fixed("");
    if (host->extension_info(handle, &info) == GOONDAN_OK) {
        host->extension_log(handle, 3, text("registered"), (goondan_text){info.data, info.len});
    }
    free_buffer(info);
    goondan_buffer dir = fixed("");
    /* Fails if conversations are not stored in files. */
    if (host->extension_state_dir(handle, &dir) == GOONDAN_OK) {
        host->extension_log(handle, 3, (goondan_text){dir.data, dir.len}, text("{}"));
    }
    free_buffer(dir);
}

static goondan_future register_extension(size_t extension, const void *handle, goondan_text name, goondan_text config) {
    (void)extension;
    (void)name;
    (void)config;
    goondan_buffer error = fixed("");
    int32_t status = add(handle, GOONDAN_TOOL, TOOL "}", (goondan_object){NULL, &LENGTH_TOOL}, &error);
    if (status == GOONDAN_OK) {
        status = add(handle, GOONDAN_TOOL, DOT "}", (goondan_object){NULL, &DOT_TOOL}, &error);
    }
    if (status == GOONDAN_OK) {
        status = add(handle, GOONDAN_TOOL, ASK "}", (goondan_object){NULL, &ASK_TOOL}, &error);
    }
    atomic_uint *calls = calloc(1, sizeof *calls);
    if (status == GOONDAN_OK && calls == NULL) {
        error = fixed(NO_MEMORY);
        status = GOONDAN_FAILED;
    }
    if (status == GOONDAN_OK) {
        /* The host owns the object even if the call fails. */
        status = add(handle, GOONDAN_TOOL_CALL, "{\"name\":\"number\"}", (goondan_object){calls, &NUMBER}, &error);
    } else {
        free(calls);
    }
    if (status == GOONDAN_OK) {
        status = add(handle, GOONDAN_STEP, "{\"name\":\"explain\"}", (goondan_object){NULL, &EXPLAIN}, &error);
    }
    log_info(handle);
    host->extension_release(handle);
    return ready(status, error);
}

static size_t extension_count(void) {
    return 1;
}

static int32_t describe(size_t extension, goondan_buffer *output) {
    (void)extension;
    *output = fixed("{\"package\":\"c-plugin\",\"name\":\"c-plugin\",\"configSchema\":{\"type\":\"object\"},"
                    "\"tools\":[{\"name\":\"c__length\",\"parameters\":{\"type\":\"object\"}},"
                    "{\"name\":\"c__dot\",\"parameters\":{\"type\":\"object\"}},"
                    "{\"name\":\"c__ask\",\"parameters\":{\"type\":\"object\"}}]}");
    return GOONDAN_OK;
}

static const goondan_plugin_table PLUGIN = {sizeof PLUGIN, extension_count, describe, register_extension};

static int32_t entry(const goondan_host_table *table, const goondan_plugin_table **plugin, goondan_buffer *error) {
    if (table->abi_major != GOONDAN_ABI_MAJOR || table->size < sizeof *table) {
        *error = fixed("{\"code\":\"E_EXT_COMPAT\",\"message\":\"the plugin was built for ABI 1.0\"}");
        return GOONDAN_FAILED;
    }
    host = table;
    *plugin = &PLUGIN;
    return GOONDAN_OK;
}

/* The only symbol that the library exports. */
__attribute__((visibility("default"))) const goondan_declaration goondan_extension_decl_v1 = {
    .magic = GOONDAN_MAGIC,
    .size = sizeof(goondan_declaration),
    .abi_major = GOONDAN_ABI_MAJOR,
    .abi_minor = GOONDAN_ABI_MINOR,
    .pointer_width = sizeof(void *) * 8,
    .panic_unwind = 1, /* C code does not panic, so it never aborts by a panic. */
    .host_table_size = sizeof(goondan_host_table),
    .plugin_table_size = sizeof(goondan_plugin_table),
    .api_version = GOONDAN_API_VERSION,
    .rustc = "cc " __VERSION__,
    .target = "C",
    .sdk_version = "1.0.0",
    .entry = entry,
};
