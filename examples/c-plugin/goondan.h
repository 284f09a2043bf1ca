/* The binary contract of goondan, version 1: goondan-abi/src/table.rs in C. That file and docs/abi.md describe each
 * entry. A test of goondan compares the layouts. */
#ifndef GOONDAN_H
#define GOONDAN_H

#include <stddef.h>
#include <stdint.h>

#define GOONDAN_MAGIC "GOONDAN-EXT-ABI" /* and the zero byte that C adds */
#define GOONDAN_ABI_MAJOR 1u
#define GOONDAN_ABI_MINOR 0u
#define GOONDAN_API_VERSION "goondan.ai/v1"

/* The status of a function. */
enum { GOONDAN_OK = 0, GOONDAN_FAILED = 1, GOONDAN_PANICKED = 2, GOONDAN_NONE = 3, GOONDAN_PENDING = 4 };
/* Kinds of registrations; the first three are also the kinds of results. */
enum {
    GOONDAN_TURN = 1, GOONDAN_STEP = 2, GOONDAN_TOOL_CALL = 3,
    GOONDAN_TOOL = 4, GOONDAN_SUBSCRIPTION = 5, GOONDAN_CLEANUP = 6
};
/* Snapshots of the conversation. */
enum { GOONDAN_BASE = 0, GOONDAN_NOW = 1 };
/* `extra` of a buffer that is a handle to a result. */
#define GOONDAN_HANDLE SIZE_MAX
/* `extra` of a buffer that is the reply of a tool: text or files, and whether it failed. */
#define GOONDAN_REPLY (SIZE_MAX - 1)

typedef struct { const uint8_t *data; size_t len; } goondan_text;

typedef struct {
    void *data;
    size_t len;
    size_t extra;
    void (*free)(void *data, size_t len, size_t extra); /* may be null */
} goondan_buffer;

typedef struct goondan_waker { const struct goondan_waker_table *table; } goondan_waker;

typedef struct goondan_waker_table {
    size_t size;
    const goondan_waker *(*clone)(const goondan_waker *waker);
    void (*wake)(const goondan_waker *waker);
    void (*wake_by_ref)(const goondan_waker *waker);
    void (*drop)(const goondan_waker *waker);
} goondan_waker_table;

typedef struct {
    size_t size;
    int32_t (*poll)(void *data, const goondan_waker *waker, goondan_buffer *output);
    void (*drop)(void *data);
} goondan_future_table;

typedef struct { void *data; const goondan_future_table *table; } goondan_future;

typedef struct {
    size_t size;
    goondan_future (*call)(void *data, const void *call, goondan_text input);
    void (*drop)(void *data);
    int32_t (*present)(void *data, goondan_text call, goondan_buffer *output);
} goondan_object_table;

typedef struct { void *data; const goondan_object_table *table; } goondan_object;

typedef struct {
    size_t size;
    uint32_t kind;
    int32_t priority;
    goondan_text text;
    goondan_object object;
} goondan_registration;

typedef struct {
    size_t cursor;
    size_t next;
    goondan_text id;
    uint32_t role; /* 0 system, 1 user, 2 assistant, 3 tool; others may follow */
    uint32_t plain;
    goondan_text text;
} goondan_message;

typedef struct {
    size_t size;
    goondan_text name;
    goondan_text target;
    goondan_text file;
    uint32_t line;
    uint32_t level;
    const goondan_text *fields;
    size_t field_count;
} goondan_log_place;

typedef struct { uint32_t kind; uint64_t bits; goondan_text text; } goondan_log_value;

typedef struct {
    size_t size;
    uint32_t abi_major;
    uint32_t abi_minor;
    uint64_t (*log_place)(const goondan_log_place *place);
    uint32_t (*log_enabled)(uint64_t place);
    void (*log_line)(uint64_t place, const goondan_log_value *values, size_t count);
    /* The result of the first is the argument of the second. */
    void *(*secret_remember)(goondan_text text);
    void (*secret_forget)(void *secret);
    int32_t (*extension_info)(const void *handle, goondan_buffer *output);
    void (*extension_log)(const void *handle, uint32_t level, goondan_text text, goondan_text fields);
    int32_t (*extension_register)(const void *handle, const goondan_registration *registration, goondan_buffer *error);
    int32_t (*extension_state)(const void *handle, goondan_buffer *output);
    int32_t (*extension_update_state)(const void *handle, void *data,
        int32_t (*change)(void *data, goondan_text state, goondan_buffer *output), goondan_buffer *error);
    int32_t (*extension_state_dir)(const void *handle, goondan_buffer *output);
    /* What all conversations of the workspace share. */
    int32_t (*extension_shared_state)(const void *handle, goondan_buffer *output);
    int32_t (*extension_update_shared_state)(const void *handle, void *data,
        int32_t (*change)(void *data, goondan_text state, goondan_buffer *output), goondan_buffer *error);
    uint64_t (*extension_subscribe)(const void *handle, goondan_text pattern, uint32_t once, goondan_object handler);
    void (*extension_unsubscribe)(const void *handle, uint64_t subscription);
    void (*extension_emit)(const void *handle, goondan_text name, goondan_text args);
    void (*extension_delegate)(const void *handle, goondan_text delegation);
    goondan_future (*extension_reload)(const void *handle, goondan_text request);
    void (*extension_release)(const void *handle);
    int32_t (*run_read)(const void *call, goondan_text field, goondan_buffer *output);
    /* `metadata`, `toolCatalog`, `model`, `modelOptions`, `args`; before `run_next` also `holdStream` of a step, `true`;
     * `answer` of a step or a tool call; `project` of a step. */
    int32_t (*run_write)(const void *call, goondan_text field, goondan_text json, goondan_buffer *error);
    uint64_t (*run_tool_catalog_revision)(const void *call);
    /* Turns, steps and tools can read messages. */
    size_t (*run_message_count)(const void *call, uint32_t snapshot);
    int32_t (*run_message_from)(const void *call, uint32_t snapshot, size_t cursor, goondan_message *message);
    int32_t (*run_message_before)(const void *call, uint32_t snapshot, size_t cursor, goondan_message *message);
    int32_t (*run_message_read)(const void *call, uint32_t snapshot, size_t cursor, goondan_text field,
        goondan_buffer *output);
    int32_t (*run_message_metadata)(const void *call, uint32_t snapshot, size_t cursor, goondan_text key,
        goondan_buffer *output);
    int32_t (*run_emit)(const void *call, goondan_text event, goondan_buffer *error);
    int32_t (*run_message_remove)(const void *call, goondan_text id, goondan_buffer *error);
    goondan_future (*run_next)(const void *call);
    /* To an agent, or to a model: `{"model": {"name"}, "input", "system", "options", "timeout"}`.
     * A value is expected as the answer with `"answer": {"schema", "atMost"}`, since 1.3; an older host ignores it. */
    goondan_future (*run_request)(const void *call, goondan_text request);
    int32_t (*run_request_later)(const void *call, goondan_text request, goondan_buffer *output);
    goondan_future (*run_send)(const void *call, goondan_text request);
    int32_t (*run_agents)(const void *call, goondan_buffer *output);
    void (*run_log)(const void *call, uint32_t level, goondan_text text, goondan_text fields);
    /* `total` may be null; `call` is that of a tool. */
    void (*run_progress)(const void *call, double done, const double *total, goondan_text text);
    int32_t (*result_read)(uint32_t kind, const void *result, goondan_text field, goondan_buffer *output);
    int32_t (*result_write)(uint32_t kind, void *result, goondan_text field, goondan_text json, goondan_buffer *error);
    void (*result_release)(uint32_t kind, void *result);
} goondan_host_table;

/* Since 1.2; `base.size` says whether the host has it. */
typedef struct goondan_host_table_1_2 {
    goondan_host_table base;
    void (*extension_show)(const void *handle, goondan_text shown);
} goondan_host_table_1_2;

/* Since 1.3. `kind` of a piece: 0 text, 1 reasoning. */
typedef struct {
    size_t size;
    int32_t (*piece)(void *data, uint32_t kind, goondan_text piece, goondan_buffer *output);
    int32_t (*end)(void *data, uint32_t kind, goondan_buffer *output);
    void (*drop)(void *data);
} goondan_transformer_table;

typedef struct {
    void *data;
    const goondan_transformer_table *table;
} goondan_transformer;

/* Since 1.3; `base.base.size` says whether the host has it. */
typedef struct goondan_host_table_1_3 {
    goondan_host_table_1_2 base;
    goondan_future (*run_ask)(const void *call, goondan_text question);
    int32_t (*run_review)(const void *call, const goondan_object *reviewer, uint32_t after_streaming,
                          goondan_buffer *error);
    int32_t (*run_transform)(const void *call, const goondan_transformer *transformer, goondan_buffer *error);
    int32_t (*extension_mask_inputs)(const void *handle, const goondan_transformer *masker, goondan_buffer *error);
} goondan_host_table_1_3;

typedef struct {
    size_t size;
    size_t (*extension_count)(void);
    int32_t (*describe)(size_t extension, goondan_buffer *output);
    goondan_future (*register_)(size_t extension, const void *handle, goondan_text name, goondan_text config);
} goondan_plugin_table;

typedef struct {
    char magic[16];
    uint32_t size;
    uint32_t abi_major;
    uint32_t abi_minor;
    uint32_t pointer_width;
    uint32_t panic_unwind;
    uint32_t host_table_size;
    uint32_t plugin_table_size;
    uint32_t reserved[5];
    char api_version[32];
    char rustc[64];
    char target[64];
    char sdk_version[32];
    int32_t (*entry)(const goondan_host_table *host, const goondan_plugin_table **plugin, goondan_buffer *error);
} goondan_declaration;

#endif
