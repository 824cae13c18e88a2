/* WiredTiger calls through function pointers in its handles, some with variable arguments. These are the
 * calls that the adapter makes, as plain functions. Each returns WiredTiger's number: 0, or an error. */

#include <stddef.h>
#include <wiredtiger.h>

#define TABLE "table:data"

int peers_wt_open(const char *home, const char *config, WT_CONNECTION **connection) {
    return wiredtiger_open(home, NULL, config, connection);
}

int peers_wt_close(WT_CONNECTION *connection) {
    return connection->close(connection, NULL);
}

int peers_wt_session(WT_CONNECTION *connection, WT_SESSION **session) {
    return connection->open_session(connection, NULL, NULL, session);
}

int peers_wt_session_close(WT_SESSION *session) {
    return session->close(session, NULL);
}

int peers_wt_create(WT_SESSION *session, const char *config) {
    return session->create(session, TABLE, config);
}

int peers_wt_checkpoint(WT_SESSION *session) {
    return session->checkpoint(session, NULL);
}

int peers_wt_compact(WT_SESSION *session) {
    return session->compact(session, TABLE, NULL);
}

int peers_wt_begin(WT_SESSION *session) {
    return session->begin_transaction(session, NULL);
}

int peers_wt_commit(WT_SESSION *session) {
    return session->commit_transaction(session, NULL);
}

int peers_wt_rollback(WT_SESSION *session) {
    return session->rollback_transaction(session, NULL);
}

int peers_wt_cursor(WT_SESSION *session, WT_CURSOR **cursor) {
    return session->open_cursor(session, TABLE, NULL, NULL, cursor);
}

int peers_wt_cursor_close(WT_CURSOR *cursor) {
    return cursor->close(cursor);
}

int peers_wt_reset(WT_CURSOR *cursor) {
    return cursor->reset(cursor);
}

int peers_wt_put(WT_CURSOR *cursor, const void *key, size_t key_len, const void *value, size_t value_len) {
    WT_ITEM key_item = {.data = key, .size = key_len};
    WT_ITEM value_item = {.data = value, .size = value_len};
    cursor->set_key(cursor, &key_item);
    cursor->set_value(cursor, &value_item);
    return cursor->insert(cursor);
}

int peers_wt_remove(WT_CURSOR *cursor, const void *key, size_t key_len) {
    WT_ITEM item = {.data = key, .size = key_len};
    cursor->set_key(cursor, &item);
    return cursor->remove(cursor);
}

int peers_wt_search(WT_CURSOR *cursor, const void *key, size_t key_len) {
    WT_ITEM item = {.data = key, .size = key_len};
    cursor->set_key(cursor, &item);
    return cursor->search(cursor);
}

/* Goes to the first entry at or after the key. */
int peers_wt_seek(WT_CURSOR *cursor, const void *key, size_t key_len) {
    WT_ITEM item = {.data = key, .size = key_len};
    int exact, error;
    cursor->set_key(cursor, &item);
    error = cursor->search_near(cursor, &exact);
    return error == 0 && exact < 0 ? cursor->next(cursor) : error;
}

int peers_wt_next(WT_CURSOR *cursor) {
    return cursor->next(cursor);
}

int peers_wt_prev(WT_CURSOR *cursor) {
    return cursor->prev(cursor);
}

int peers_wt_key(WT_CURSOR *cursor, const void **key, size_t *key_len) {
    WT_ITEM item;
    int error = cursor->get_key(cursor, &item);
    *key = error ? NULL : item.data;
    *key_len = error ? 0 : item.size;
    return error;
}

int peers_wt_value(WT_CURSOR *cursor, const void **value, size_t *value_len) {
    WT_ITEM item;
    int error = cursor->get_value(cursor, &item);
    *value = error ? NULL : item.data;
    *value_len = error ? 0 : item.size;
    return error;
}
