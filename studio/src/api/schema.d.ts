// Written by scripts/api-types.mjs from the OpenAPI document; do not edit.

export interface paths {
    "/api/atomic": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Carries an atomic operation out. */
        post: operations["atomic"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Downloads a copy of the database. */
        get: operations["backup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Exports the entries of a range, one a line. */
        get: operations["export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Imports the lines of an export. */
        post: operations["import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/indexes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the indexes, with the number of their documents. */
        get: operations["listIndexes"];
        put?: never;
        /** Creates an index. It is built in the background. */
        post: operations["createIndex"];
        /** Drops an index, by its prefix or its name. */
        delete: operations["dropIndex"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the entry of `?key=`, or a list. */
        get: operations["listEntries"];
        /** Writes the entry of `?key=`. */
        put: operations["putEntryOfKey"];
        post?: never;
        /** Deletes the entry of `?key=` and all entries below it. */
        delete: operations["deleteEntriesOfKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the entries of keys, from one state of the database. */
        post: operations["batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts a range. */
        get: operations["countByQuery"];
        put?: never;
        /** Counts a range, with conditions. */
        post: operations["count"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/delete-batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes the entries of keys and all entries below them. */
        post: operations["deleteBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lists a range, with conditions. */
        post: operations["list"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/paginate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page of a range. */
        get: operations["paginateByQuery"];
        put?: never;
        /** A page of a range, with conditions. */
        post: operations["paginate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an entry. */
        get: operations["getEntry"];
        /** Writes an entry. */
        put: operations["putEntry"];
        post?: never;
        /** Deletes the entry of a key and all entries below it. */
        delete: operations["deleteEntries"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The metrics of the database. */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/metrics/prometheus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The metrics of the database as Prometheus' text, or OpenMetrics. */
        get: operations["metricsOfPrometheus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/ack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a delivery: the message is handled. */
        post: operations["ack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/dlq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the dead letters of a queue, in the order of their deaths. */
        get: operations["listDeadLetters"];
        put?: never;
        post?: never;
        /** Deletes the dead letters of a queue, step by step. */
        delete: operations["purgeDeadLetters"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/dlq/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a dead letter. */
        get: operations["getDeadLetter"];
        put?: never;
        post?: never;
        /** Deletes a dead letter. */
        delete: operations["deleteDeadLetter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/dlq/{id}/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enqueues a dead letter again. */
        post: operations["requeueDeadLetter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/enqueue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enqueues a message. */
        post: operations["enqueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Extends the lock of a delivery. */
        post: operations["extend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/listen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Delivers the messages of a queue. `POST /queue/ack` ends each, and makes room for another one. */
        get: operations["listen"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/nack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a delivery: the message has failed, and is retried or becomes a dead letter. */
        post: operations["nack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/poll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Takes a message, or waits for one. It is hidden from other consumers until its lock expires. */
        get: operations["pollQueue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts the messages of a queue. */
        get: operations["queueStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Searches an index, without conditions. */
        get: operations["searchByQuery"];
        put?: never;
        /** Searches an index. */
        post: operations["search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follows the newest state of keys. */
        get: operations["watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/watch/poll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the states of keys that differ from those of the client, or waits for one. */
        get: operations["poll"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/watch/prefix": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follows the changes below a prefix. */
        get: operations["watchPrefix"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/watch/prefix/poll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the changes below a prefix after a commit, or waits for them. */
        get: operations["pollPrefix"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An atomic operation. */
        AtomicBody: {
            /** @description Conditions, all of which must hold. */
            checks?: components["schemas"]["Check"][];
            /** @description Changes, in their order. */
            mutations?: components["schemas"]["Mutation"][];
        };
        /** @description The outcome of an atomic operation. */
        AtomicOutcome: {
            /** @description The checks that did not hold, by index. */
            failed?: number[] | null;
            /** @description The messages, in their order. */
            messages?: components["schemas"]["MessageOutcome"][];
            /** @description Whether all checks held and everything happened. */
            ok: boolean;
            /** @description The UUIDs of the placeholders, in the order of the keys. */
            uuids?: string[];
            versionstamp?: string | null;
        };
        /** @description The entries of keys. */
        Batch: {
            /** @description In the order of the keys; without an entry, value and versionstamp are `null`. */
            entries: components["schemas"]["Entry"][];
        };
        /** @description Keys. */
        BatchBody: {
            /** @description At most 1000. */
            keys: unknown[][];
        };
        /** @description The changes since a commit. */
        Changes: {
            /** @description In the order of commits; without an entry any more, value and versionstamp are `null`. */
            entries: components["schemas"]["Entry"][];
            /** @description Changes after `since` are no longer logged: read the entries, then go on. */
            gap: boolean;
            /** @description The `since` of the next request. */
            versionstamp: string;
        };
        /** @description A condition on one entry. */
        Check: {
            key: unknown[];
            /** @description That of the entry; `null` if there must be none. */
            versionstamp?: string | null;
        };
        /** @description What a count selects. */
        CountBody: {
            /**
             * Format: int64
             * @description Most parts behind the prefix.
             */
            depth?: number | null;
            /** @description The last key, excluded. */
            end?: unknown[] | null;
            /** @description A key. */
            prefix?: unknown[] | null;
            /** @description The first key, included. */
            start?: unknown[] | null;
            /** @description Only entries whose values match. */
            where?: Record<string, never> | null;
        };
        /** @description The number of entries. */
        Counted: {
            /** Format: int64 */
            count: number;
        };
        /** @description A dead letter. */
        DeadLetter: {
            /** Format: int32 */
            attempts: number;
            diedAt: string;
            /** @description RFC 3339, as the other times. */
            enqueuedAt: string;
            error: string;
            /** @description The name of the error of its last delivery. */
            errorName: string;
            firstAttemptAt: string;
            id: string;
            lastAttemptAt: string;
            value: unknown;
        };
        /** @description A page of dead letters. */
        DeadLetters: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            messages: components["schemas"]["DeadLetter"][];
        };
        /** @description Keys to delete. */
        DeleteBatchBody: {
            /** @description Only the entries of the keys, and none below them. */
            exact?: boolean | null;
            /** @description At most 1000. */
            keys: unknown[][];
            /** @description Only entries whose values match. */
            where?: Record<string, never> | null;
        };
        /** @description Which entries a deletion of a key takes. */
        DeleteBody: {
            /** @description Only the entry of the key, and none below it. */
            exact?: boolean | null;
            /** @description Only entries whose values match. */
            where?: Record<string, never> | null;
        };
        /** @description The answer of a deletion. */
        Deleted: {
            /** Format: int64 */
            deleted: number;
        };
        /** @description A delivered message. */
        Delivery: {
            /**
             * Format: int32
             * @description The number of deliveries, including this one.
             */
            attempts: number;
            /** @description RFC 3339. */
            enqueuedAt: string;
            id: string;
            /** @description Names the delivery when it ends. */
            lock: string;
            value: unknown;
        };
        /** @description The end of a delivery, or the extension of its lock. */
        DeliveryEnd: {
            /**
             * Format: int64
             * @description Of `nack`: the retry comes after so many ms, instead of the backoff's next interval.
             */
            delay?: number | null;
            /** @description Of `nack`: why it failed. */
            error?: string | null;
            id: string;
            /** @description That of the delivery. */
            lock: string;
            /**
             * Format: int64
             * @description Of `extend`: ms from now until the lock expires, by default 5000.
             */
            lockDuration?: number | null;
        };
        /** @description The answer of an end. */
        DeliveryEnded: {
            /** @description Whether the lock still held. If not, another consumer may have the message. */
            ok: boolean;
        };
        /** @description The outcome of a drop. */
        Dropped: {
            /** @description Whether the index existed. */
            ok: boolean;
        };
        /** @description The answer of an enqueue. */
        Enqueued: {
            deduplicated: boolean;
            /** @description The number of the message, or of the earlier one with its deduplication key. */
            id?: string | null;
            ok: boolean;
            versionstamp: string;
        };
        /** @description An entry in `application/json`. */
        Entry: {
            /** @description RFC 3339; absent for an entry that does not expire. */
            expireAt?: string;
            /** @description Parts: a string, number or boolean, or an object with `type` and `value`. */
            key: unknown[];
            value?: unknown;
            /** @description Twenty hexadecimal digits; `null` if there is no entry. */
            versionstamp?: string | null;
        };
        /** @description An entry that a search has found. */
        FoundEntry: {
            /** @description RFC 3339; absent for an entry that does not expire. */
            expireAt?: string;
            /** @description Parts: a string, number or boolean, or an object with `type` and `value`. */
            key: unknown[];
            value?: unknown;
            /** @description Twenty hexadecimal digits; `null` if there is no entry. */
            versionstamp?: string | null;
        } & {
            /** @description With `highlight`: a snippet of each field with a match, by field. */
            highlights?: Record<string, never>;
            /**
             * Format: double
             * @description BM25: larger is better. Comparable within one answer only.
             */
            score: number;
        };
        /** @description Whether there are snippets, or their marks. */
        Highlight: boolean | components["schemas"]["Marks"];
        /** @description The answer of an import. */
        Imported: {
            /**
             * Format: int64
             * @description Entries that are committed.
             */
            imported: number;
            /**
             * Format: int64
             * @description Entries that existed already or had expired.
             */
            skipped: number;
        };
        /** @description An index. */
        Index: {
            /**
             * Format: int64
             * @description Entries with text in any field.
             */
            documents: number;
            fields: string[];
            /**
             * Format: int64
             * @description The number of such entries that were added.
             */
            indexed: number;
            name: string;
            prefix: unknown[];
            prefixLengths: number[];
            /** @description `building` while entries older than the index are being added, then `ready`. */
            state: string;
            tokenize: string;
        };
        /** @description The indexes of the database. */
        Indexes: {
            /** @description By name. */
            indexes: components["schemas"]["Index"][];
        };
        /** @description A list in a body. */
        ListBody: {
            /** @description Where the page before this one ended. */
            cursor?: string | null;
            /**
             * Format: int64
             * @description Most parts behind the prefix.
             */
            depth?: number | null;
            /** @description The last key, excluded. */
            end?: unknown[] | null;
            /** @description Without values. */
            keysOnly?: boolean | null;
            /**
             * Format: int64
             * @description Most entries: 1 to 1000, by default 100.
             */
            limit?: number | null;
            /** @description A key. */
            prefix?: unknown[] | null;
            /** @description From the end backwards. */
            reverse?: boolean | null;
            /** @description The first key, included. */
            start?: unknown[] | null;
            /** @description Only entries whose values match. */
            where?: Record<string, never> | null;
        };
        /** @description The marks of snippets. */
        Marks: {
            /** @description The text behind a match, by default `</b>`. */
            after?: string | null;
            /** @description The text before a match, by default `<b>`. */
            before?: string | null;
            /** @description The text in place of omitted text, by default `…`. */
            ellipsis?: string | null;
            /**
             * Format: int32
             * @description Most terms of a snippet: 1 to 64, by default 32.
             */
            terms?: number | null;
        };
        /** @description A message of an atomic operation. */
        MessageOutcome: {
            deduplicated: boolean;
            /** @description The number of the message, or of the earlier one with its deduplication key. */
            id?: string | null;
        };
        /** @description A change, or a message. */
        Mutation: {
            /**
             * Format: int64
             * @description When it is due, in ms since the epoch.
             */
            at?: number | null;
            /** @description Waiting times before the retries, in ms. */
            backoffSchedule?: number[] | null;
            /**
             * Format: int64
             * @description How long it is kept when it is dead, in ms.
             */
            deadRetention?: number | null;
            /** @description The queue holds at most one message with this key. */
            deduplicationKey?: string | null;
            /**
             * Format: int64
             * @description Of `enqueue`, as the following ones: it is due in so many ms.
             */
            delay?: number | null;
            /**
             * Format: int64
             * @description The entry expires in so many ms.
             */
            expireIn?: number | null;
            /**
             * @description Not of `enqueue`. Of `set`, the last part may be `{"type":"commitVersionstamp"}`, and any part
             *     `{"type":"uuidv7"}`: the commit fills it in.
             */
            key?: unknown[] | null;
            /** @description The keys that get its value when it dies, at most 10. */
            keysIfUndelivered?: unknown[][] | null;
            /**
             * Format: int32
             * @description 0 to 9; the highest is delivered first.
             */
            priority?: number | null;
            /** @description Of `enqueue`: its queue. */
            queue?: string | null;
            type: components["schemas"]["MutationType"];
            /**
             * @description Not of `delete`. Of `sum`, `min` and `max` a number, or a typed bigint or `KvU64`; of `append`
             *     and `prepend` an array.
             */
            value?: unknown;
        };
        /**
         * @description The kind of a change.
         * @enum {string}
         */
        MutationType: "set" | "delete" | "sum" | "min" | "max" | "append" | "prepend" | "enqueue";
        /** @description The description of an index. */
        NewIndex: {
            /** @description Paths into the values, steps separated by dots. */
            fields: string[];
            /** @description By default a literal of the prefix. */
            name?: string | null;
            /** @description A key: the index covers the keys that extend it. */
            prefix?: unknown[] | null;
            /** @description Lengths in characters of the beginnings of words that are indexed too. */
            prefixLengths?: number[];
            /** @description Whether it replaces another index of its prefix or name, by default true. */
            replace?: boolean | null;
            /** @description `unicode61`, by default; `porter` or `ascii`. */
            tokenize?: string | null;
        };
        /** @description A message to enqueue. */
        NewMessage: {
            /**
             * Format: int64
             * @description When it is due, in ms since the epoch; not together with `delay`.
             */
            at?: number | null;
            /** @description Waiting times before the retries, in ms. */
            backoffSchedule?: number[] | null;
            /**
             * Format: int64
             * @description How long it is kept when it is dead, in ms.
             */
            deadRetention?: number | null;
            /** @description The queue holds at most one message with this key. */
            deduplicationKey?: string | null;
            /**
             * Format: int64
             * @description It is due in so many ms.
             */
            delay?: number | null;
            /** @description The keys that get its value when it dies, at most 10. */
            keysIfUndelivered?: unknown[][] | null;
            /**
             * Format: int32
             * @description 0 to 9; the highest is delivered first.
             */
            priority?: number | null;
            value: unknown;
        };
        /** @description A page of a list. */
        Page: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            entries: components["schemas"]["Entry"][];
            /** @description Whether there is a next page. */
            hasMore: boolean;
        };
        /** @description The body of an error (RFC 9457). */
        Problem: {
            /** @description What happened, for programs. */
            code: string;
            /** @description For people; may change in any release. */
            detail: string;
            /** @description Of 412: the present entry, `null` if there is none. */
            entry?: Record<string, never> | null;
            /** @description The same as `detail`. */
            error: string;
            /**
             * Format: int64
             * @description Of an import: the entries that are committed.
             */
            imported?: number | null;
            /** @description Of 421: the URL of the server that leads the database. */
            leader?: string | null;
            /**
             * Format: int64
             * @description Of an import: the number of the line that ended it, from 1. All lines before it are committed or
             *     skipped, and none from it on.
             */
            line?: number | null;
            /**
             * Format: int64
             * @description Of an import: the entries that existed already or had expired.
             */
            skipped?: number | null;
            /** Format: int32 */
            status: number;
            /** @description The phrase of the status. */
            title: string;
            /** @description Always `about:blank`: the code tells more than the status. */
            type: string;
        };
        /** @description The messages of a queue, by state. */
        QueueStats: {
            /** Format: int64 */
            dead: number;
            /** Format: int64 */
            delayed: number;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            processing: number;
        };
        /** @description A poll of a queue. */
        Received: {
            message?: components["schemas"]["Delivery"] | null;
        };
        /** @description The answer of a requeue. */
        Requeued: {
            ok: boolean;
        };
        /** @description A search. */
        Search: {
            /** @description Where the page before this one ended. */
            cursor?: string | null;
            highlight?: components["schemas"]["Highlight"] | null;
            /**
             * Format: int64
             * @description Most entries: 1 to 1000, by default 20.
             */
            limit?: number | null;
            /**
             * Format: int64
             * @description Entries to skip.
             */
            offset?: number | null;
            /** @description A key: only entries whose keys extend it. */
            prefix?: unknown[] | null;
            query: string;
            /** @description Only entries whose values match. */
            where?: Record<string, never> | null;
        };
        /** @description A page of a search. */
        SearchPage: {
            /** @description False while the index is being built: older entries may be missing. */
            complete: boolean;
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            /** @description Best first. */
            entries: components["schemas"]["FoundEntry"][];
            /** @description Whether there is a next page. */
            hasMore: boolean;
        };
        /** @description The states of keys. */
        States: {
            /** @description Those that differ from `versionstamps`; without an entry, value and versionstamp are `null`. */
            entries: components["schemas"]["Entry"][];
            /** @description Of all keys, in their order: the `versionstamps` of the next request. */
            versionstamps: (string | null)[];
        };
        /** @description The answer of a write. */
        Written: {
            ok: boolean;
            versionstamp: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    atomic: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AtomicBody"];
            };
        };
        responses: {
            /** @description Done, or refused by a check. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AtomicOutcome"];
                };
            };
        };
    };
    backup: {
        parameters: {
            query?: never;
            header?: {
                /** @description `bytes=N-` or `bytes=N-M`, with `if-range`. */
                range?: string | null;
                /** @description The `etag` of the download that broke off. If its copy is no longer there, the answer is another copy. */
                "if-range"?: string | null;
                /** @description As `if-range`; without the copy the answer is 412. */
                "if-match"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A database file. `repr-digest` has its SHA-256. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.sqlite3": string;
                };
            };
            /** @description The rest of a file. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.sqlite3": string;
                };
            };
        };
    };
    export: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description The first key, included. */
                start?: string;
                /** @description The last key, excluded. */
                end?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description NDJSON, in the order of the keys. A connection that breaks off has not sent all of it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
        };
    };
    import: {
        parameters: {
            query?: {
                /** @description A key, as a literal, in front of every key. */
                prefix?: string;
                /** @description Whether existing entries are replaced, by default true. */
                overwrite?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description All lines are committed or skipped. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Imported"];
                };
            };
        };
    };
    listIndexes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All indexes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Indexes"];
                };
            };
        };
    };
    createIndex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewIndex"];
            };
        };
        responses: {
            /** @description The index; the same one, if it existed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Index"];
                };
            };
        };
    };
    dropIndex: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description The name of the index. */
                name?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether it existed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dropped"];
                };
            };
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description Reads this entry instead of a list. */
                key?: string;
                /** @description A key as a literal of the command line: `users` or `["users",42n]`. */
                prefix?: string;
                /** @description The first key, included. */
                start?: string;
                /** @description The last key, excluded. */
                end?: string;
                /** @description Most entries: 1 to 1000, by default 100. */
                limit?: number;
                /** @description From the end backwards. */
                reverse?: boolean;
                /** @description Where the page before this one ended. */
                cursor?: string;
                /** @description Without values. */
                keysOnly?: boolean;
                /** @description Most parts behind the prefix; longer keys are shortened to it, once each. */
                depth?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, or the entry of `key`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
        };
    };
    putEntryOfKey: {
        parameters: {
            query: {
                /** @description The key, as a literal of the command line. */
                key: string;
                /** @description The entry expires in so many ms. */
                expireIn?: number;
                /** @description The same. */
                expiresIn?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The value. */
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Written. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Written"];
                };
            };
        };
    };
    deleteEntriesOfKey: {
        parameters: {
            query: {
                /** @description The key, as a literal of the command line. */
                key: string;
                /** @description Only the entry of the key. */
                exact?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteBody"] | null;
            };
        };
        responses: {
            /** @description The number of deleted entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    batch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchBody"];
            };
        };
        responses: {
            /** @description An entry for each key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Batch"];
                };
            };
        };
    };
    countByQuery: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description The first key, included. */
                start?: string;
                /** @description The last key, excluded. */
                end?: string;
                /** @description Most parts behind the prefix. */
                depth?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Counted"];
                };
            };
        };
    };
    count: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CountBody"];
            };
        };
        responses: {
            /** @description The number of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Counted"];
                };
            };
        };
    };
    deleteBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeleteBatchBody"];
            };
        };
        responses: {
            /** @description The number of deleted entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ListBody"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
        };
    };
    paginateByQuery: {
        parameters: {
            query?: {
                /** @description Reads this entry instead of a list. */
                key?: string;
                /** @description A key as a literal of the command line: `users` or `["users",42n]`. */
                prefix?: string;
                /** @description The first key, included. */
                start?: string;
                /** @description The last key, excluded. */
                end?: string;
                /** @description Most entries: 1 to 1000, by default 100. */
                limit?: number;
                /** @description From the end backwards. */
                reverse?: boolean;
                /** @description Where the page before this one ended. */
                cursor?: string;
                /** @description Without values. */
                keysOnly?: boolean;
                /** @description Most parts behind the prefix; longer keys are shortened to it, once each. */
                depth?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
        };
    };
    paginate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ListBody"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
        };
    };
    getEntry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The parts of the key, each a string. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entry; in CBOR and as bytes, its value alone. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description The entry is the one of If-None-Match. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description There is no entry. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putEntry: {
        parameters: {
            query?: {
                /** @description The entry expires in so many ms. */
                expireIn?: number;
                /** @description The same. */
                expiresIn?: number;
            };
            header?: never;
            path: {
                /** @description The parts of the key, each a string. */
                path: string;
            };
            cookie?: never;
        };
        /** @description The value. */
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Written. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Written"];
                };
            };
            /** @description The entry is not as the conditions say. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteEntries: {
        parameters: {
            query?: {
                /** @description Only the entry of the key. */
                exact?: boolean;
            };
            header?: never;
            path: {
                /** @description The parts of the key, each a string. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DeleteBody"] | null;
            };
        };
        responses: {
            /** @description The number of deleted entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The counters, as `kv.metrics()` has them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
        };
    };
    metricsOfPrometheus: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus' text. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    ack: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeliveryEnd"];
            };
        };
        responses: {
            /** @description Whether the lock still held. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryEnded"];
                };
            };
        };
    };
    listDeadLetters: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Most letters: 1 to 1000, by default 100. */
                limit?: number;
                /** @description Where the page before this one ended. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of dead letters. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetters"];
                };
            };
        };
    };
    purgeDeadLetters: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of deleted letters. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    getDeadLetter: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path: {
                /** @description Its number. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The dead letter. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
        };
    };
    deleteDeadLetter: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path: {
                /** @description Its number. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    requeueDeadLetter: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path: {
                /** @description Its number. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Enqueued again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Requeued"];
                };
            };
        };
    };
    enqueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMessage"];
            };
        };
        responses: {
            /** @description Enqueued. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Enqueued"];
                };
            };
        };
    };
    extend: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeliveryEnd"];
            };
        };
        responses: {
            /** @description Whether the lock still held. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryEnded"];
                };
            };
        };
    };
    listen: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Ms until another consumer gets a message that is not acknowledged: 100 to 86400000, by default 5000. */
                lockDuration?: number;
                /** @description Most messages that are not acknowledged at one time: 1 to 1000, by default 10. */
                concurrency?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events: message, ping. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    nack: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeliveryEnd"];
            };
        };
        responses: {
            /** @description Whether the lock still held. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryEnded"];
                };
            };
        };
    };
    pollQueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Ms until another consumer gets the message: 100 to 86400000, by default 5000. */
                lockDuration?: number;
                /** @description Wait so many ms for a message: 0 to 60000, by default 0. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A message, or none. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Received"];
                };
            };
        };
    };
    queueStats: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Messages by state. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueStats"];
                };
            };
        };
    };
    searchByQuery: {
        parameters: {
            query: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description Words, as in the JavaScript API. */
                query: string;
                /** @description Most entries: 1 to 1000, by default 20. */
                limit?: number;
                /** @description Entries to skip. */
                offset?: number;
                /** @description Where the page before this one ended. */
                cursor?: string;
                /** @description With snippets of the fields with a match. */
                highlight?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchPage"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Search"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchPage"];
                };
            };
        };
    };
    watch: {
        parameters: {
            query: {
                /** @description Keys as literals: `[["users",1],["config"]]`, or one key. */
                keys: string;
                /** @description Begin with the present entries; by default true. */
                initial?: boolean;
                /** @description The id of the last event that was received. */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events: change, ping. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    poll: {
        parameters: {
            query: {
                /** @description Keys as literals: `[["users",1],["config"]]`, or one key. */
                keys: string;
                /** @description Those of the last answer, with commas; `null` for no entry. */
                versionstamps?: string;
                /** @description Wait so many ms for a difference: 0 to 60000, by default 0. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The states. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["States"];
                };
            };
        };
    };
    watchPrefix: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description Begin with the present entries. */
                initial?: boolean;
                /** @description An event ends after so many changes, at the end of a commit: 1 to 1000, by default 100. */
                limit?: number;
                /** @description The id of the last event that was received. */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events: change, ping, gap. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    pollPrefix: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description The versionstamp of the last answer; without it, the answer has the present one. */
                since?: string;
                /** @description The answer ends after so many changes, at the end of a commit: 1 to 1000, by default 100. */
                limit?: number;
                /** @description Wait so many ms for a change: 0 to 60000, by default 0. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Changes"];
                };
            };
        };
    };
}
