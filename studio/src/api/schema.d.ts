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
    "/api/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the versions of the entry of a key, the newest first. */
        get: operations["listEntryVersions"];
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
        /** Lists the indexes of both types; full-text indexes with the number of their documents. */
        get: operations["listIndexes"];
        put?: never;
        /** Creates an index. It is built in the background. */
        post: operations["createIndex"];
        /** Drops an index: a full-text index by its prefix, or an index of either type by its name. */
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
        /** Deletes the entry of `?key=`, or all entries below it too. */
        delete: operations["deleteEntryOfKey"];
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
        /** Deletes the entries of keys, or all entries below them too. */
        post: operations["deleteBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Explains a list: carries it out without answering its entries, and tells what it reads. */
        post: operations["explain"];
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
        /** Deletes the entry of a key, or all entries below it too. */
        delete: operations["deleteEntry"];
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
        /** Ends a delivery: the message is handled. Its result is stored by the same commit. */
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
    "/api/queue/dlq/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enqueues the dead letters of a queue again, those that died first, at most 512 of them. */
        post: operations["requeueDeadLetters"];
        delete?: never;
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
    "/api/queue/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes the messages of a queue that wait, step by step. They leave no dead letters. */
        post: operations["drainQueue"];
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
    "/api/queue/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follows what happens to the messages of a queue whose results are kept. */
        get: operations["queueEvents"];
        put?: never;
        post?: never;
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
    "/api/queue/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the groups of a queue that have messages which wait, and tells its limits. */
        get: operations["listGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells the limits of a queue. */
        get: operations["getLimits"];
        /** Gives a queue its limits, in place of those that it had. They hold over all processes. */
        put: operations["setLimits"];
        post?: never;
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
    "/api/queue/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the messages of a queue in the order of delivery, without taking them. */
        get: operations["peekMessages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/messages/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a message of a queue that no consumer has. */
        delete: operations["deleteMessage"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/messages/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes a message that waits or that a consumer has. The lock of its consumer is lost. */
        post: operations["cancelMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/messages/{id}/progress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the last progress of a message. */
        get: operations["messageProgress"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/messages/{id}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells how a message has ended, or waits for its end. */
        get: operations["messageResult"];
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
    "/api/queue/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a queue, or a group of it: no consumer gets a message until it resumes. Deliveries under way are not affected. */
        post: operations["pauseQueue"];
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
    "/api/queue/progress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stores how far the handler of a delivery is; the message stays locked. Only of queues with a name. Kept for as long as
         *     `keepResult` of the message says, and without it for an hour.
         */
        post: operations["tellProgress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends the pause of a queue, or of a group of it. */
        post: operations["resumeQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the schedules of a queue by their next due times. */
        get: operations["listSchedules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/schedules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Sets a schedule: the queue gets a message at each due time. The same schedule again changes nothing; another one of
         *     the same name replaces it.
         */
        put: operations["setSchedule"];
        post?: never;
        /** Removes a schedule. The messages that it has made stay. */
        delete: operations["removeSchedule"];
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
    "/api/rights": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells whether the token may write. */
        get: operations["rights"];
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
    "/api/sizes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells entries and bytes of each prefix of a range. */
        get: operations["sizes"];
        put?: never;
        post?: never;
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
            /** @description The UUIDs of the placeholders, in the order in which they first occur; in a mutation the key comes before the value. */
            uuids?: string[];
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        };
        /** @description Ms, or a text with units (ms, s, m, h, d) like `5m`. */
        BackoffTime: number | string;
        /** @description The entries of keys. */
        Batch: {
            /** @description In the order of the keys; without an entry, value and versionstamp are `null`. */
            entries: {
                /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
                expireAt?: string | null;
                key: components["schemas"]["Key"];
                /**
                 * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
                 *     read.
                 */
                value?: unknown;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
        };
        /** @description Keys. */
        BatchBody: {
            /** @description At most 1000. */
            keys: components["schemas"]["Key"][];
        };
        /** Format: binary */
        Binary: string;
        /** @description The changes since a commit. */
        Changes: {
            /** @description In the order of commits; without an entry any more, value and versionstamp are `null`. */
            entries: {
                /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
                expireAt?: string | null;
                key: components["schemas"]["Key"];
                /**
                 * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
                 *     read.
                 */
                value?: unknown;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Changes after `since` are no longer logged: read the entries, then go on. */
            gap: boolean;
            /** @description The `since` of the next request. */
            versionstamp: components["schemas"]["Versionstamp"];
        };
        /** @description A condition on one entry. */
        Check: {
            key: components["schemas"]["Key"];
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        };
        /** @description What a count selects. */
        CountBody: {
            /** @description Most parts behind the prefix. */
            depth?: number | null;
            end?: components["schemas"]["Prefix"] | null;
            prefix?: components["schemas"]["Prefix"] | null;
            start?: components["schemas"]["Prefix"] | null;
            where?: components["schemas"]["Filter"] | null;
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
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
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
            /** @description Also all entries below the keys: by default only with `where`. */
            descendants?: boolean | null;
            /** @description At most 1000. */
            keys: components["schemas"]["Key"][];
            where?: components["schemas"]["Filter"] | null;
        };
        /** @description Which entries a deletion of a key takes. */
        DeleteBody: {
            /** @description Also all entries below the key: by default only with `where`. */
            descendants?: boolean | null;
            where?: components["schemas"]["Filter"] | null;
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
            /**
             * Format: int32
             * @description The number of deliveries that can follow, if this one fails.
             */
            attemptsLeft: number;
            /** @description RFC 3339. */
            enqueuedAt: string;
            /** @description Its group. */
            group?: string | null;
            id: string;
            /** @description Names the delivery when it ends. */
            lock: string;
            /** @description The trace context of the enqueue, as the headers of W3C Trace Context. */
            traceparent?: string | null;
            /** @description That of the enqueue. */
            tracestate?: string | null;
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A delivery that is handled. */
        DeliveryEnd: {
            id: components["schemas"]["Number"];
            /** @description That of the delivery. */
            lock: components["schemas"]["Number"];
            /** @description What its handler returns, which is stored by the same commit if the message was enqueued with `keepResult`. */
            result?: unknown;
        };
        /** @description The answer of an end. */
        DeliveryEnded: {
            error?: string | null;
            /** @description `LockExpired` if not. */
            errorName?: string | null;
            /** @description Whether the lock still held. If not, nothing is changed, and another consumer may have the message. */
            ok: boolean;
        };
        /** @description A delivery whose lock is extended. */
        DeliveryExtension: {
            id: components["schemas"]["Number"];
            /** @description That of the delivery. */
            lock: components["schemas"]["Number"];
            /** @description From now until the lock expires. */
            lockDuration?: (number | string) | null;
        };
        /** @description A delivery that has failed. */
        DeliveryFailure: {
            /** @description The retry comes after so long, instead of the backoff's next interval. */
            delay?: (number | string) | null;
            /** @description Why it failed. */
            error?: string | null;
            id: components["schemas"]["Number"];
            /** @description That of the delivery. */
            lock: components["schemas"]["Number"];
            /** @description `false`: no retry can help, so the message is a dead letter now. Not together with `delay`. */
            retry?: boolean | null;
        };
        /** @description The progress of a delivery. */
        DeliveryProgress: {
            id: components["schemas"]["Number"];
            /** @description That of the delivery. */
            lock: components["schemas"]["Number"];
            /** @description How far its handler is. */
            value: unknown;
        };
        /**
         * @description The order of the values under a path.
         * @enum {string}
         */
        Direction: "asc" | "desc";
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
            versionstamp: components["schemas"]["Versionstamp"];
        };
        /** @description An entry in `application/json`. */
        Entry: {
            /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
            expireAt?: string | null;
            key: components["schemas"]["Key"];
            /**
             * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
             *     read.
             */
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        };
        /** @description What a commit has made of an entry. */
        EntryVersion: {
            /** @description RFC 3339; `null` for a commit before the beginning of the history. */
            committedAt?: string | null;
            /** @description RFC 3339; `null` without an expiry. */
            expireAt?: string | null;
            /**
             * @description `set`: the commit has stored the value; `expiry`: it has changed the expiry alone; `delete`: it has removed
             *     the entry.
             */
            type: components["schemas"]["VersionType"];
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp: components["schemas"]["Versionstamp"];
        };
        /** @description A page of the versions of an entry. */
        EntryVersions: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            versions: components["schemas"]["EntryVersion"][];
        };
        /** @description The values under a path that a list reads. */
        ExplainedBounds: {
            path: string;
            /** @description Values and ranges of values, in words. */
            ranges: string[];
        };
        /** @description What a list reads of an index. */
        ExplainedBranch: {
            /** @description The first paths of the index. None: the whole index is read. */
            bounds: components["schemas"]["ExplainedBounds"][];
            /** @description The name of the index. */
            index: string;
        };
        /** @description What a list reads, and how much. */
        Explanation: {
            /** @description What is read of value indexes. */
            branches: components["schemas"]["ExplainedBranch"][];
            /** @description False if the explanation ended before the list: the numbers are those until then. */
            complete: boolean;
            /**
             * Format: int64
             * @description Those of them that do not match.
             */
            filtered: number;
            /**
             * Format: int64
             * @description Entries of indexes that were read.
             */
            indexEntries: number;
            method: components["schemas"]["MethodBody"];
            /** @description Why no index is read, or with `sort` why none has the order; `null` if one does all, or if nothing asks for one. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Entries that the list has.
             */
            returned: number;
            /**
             * Format: int64
             * @description Entries that were read.
             */
            visited: number;
        };
        /** @description Only entries whose values match. */
        Filter: Record<string, never>;
        /** @description An entry that a search has found. */
        FoundEntry: {
            /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
            expireAt?: string | null;
            key: components["schemas"]["Key"];
            /**
             * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
             *     read.
             */
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        } & {
            /** @description With `highlight`: a snippet of each field with a match, by field. */
            highlights?: Record<string, never>;
            /**
             * Format: double
             * @description BM25: larger is better. Comparable within one answer only.
             */
            score: number;
        };
        /** @description A group with messages that wait. */
        Group: {
            /** Format: int64 */
            delayed: number;
            name: string;
            paused: boolean;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            processing: number;
        };
        /** @description What may run of a queue or of a group. */
        GroupLimits: {
            /**
             * Format: int32
             * @description `null`: any number.
             */
            concurrency?: number | null;
            rate?: components["schemas"]["Rate"] | null;
        };
        /** @description The limits of a queue, and a page of its groups. */
        Groups: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            groups: components["schemas"]["Group"][];
            hasMore: boolean;
            limits: components["schemas"]["Limits"];
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
        Index: (components["schemas"]["TextIndex"] & {
            /** @enum {string} */
            type: "fulltext";
        }) | (components["schemas"]["ValueIndex"] & {
            /** @enum {string} */
            type: "value";
        });
        /** @description Why a unique index could not be built. */
        IndexFailure: {
            /** @description The entry that does not fit. */
            key: unknown[];
            /** @description The entry with the same value; `null` if the value itself cannot be unique. */
            other?: unknown[] | null;
        };
        /** @description A path, or with its order. */
        IndexPath: string | components["schemas"]["OrderedPath"];
        /** @description The paths of an index. */
        IndexPaths: components["schemas"]["IndexPath"] | components["schemas"]["IndexPath"][];
        /**
         * @description The types of indexes.
         * @enum {string}
         */
        IndexType: "fulltext" | "value";
        /** @description The indexes of the database. */
        Indexes: {
            /** @description By name. */
            indexes: components["schemas"]["Index"][];
        };
        Key: components["schemas"]["KeyPart"][];
        /** @description Strings, finite numbers and booleans are themselves; any part can be typed. */
        KeyPart: string | number | boolean | components["schemas"]["TypedKeyPart"];
        /** @description The limits of a queue. */
        Limits: {
            /**
             * Format: int32
             * @description `null`: any number.
             */
            concurrency?: number | null;
            /** @description Of each of its groups. */
            group: components["schemas"]["GroupLimits"];
            rate?: components["schemas"]["Rate"] | null;
        };
        /** @description The answer of a change of limits. */
        LimitsChanged: {
            /** @description Whether it has changed anything. */
            changed: boolean;
        };
        /** @description A list in a body. */
        ListBody: {
            /** @description Where the page before this one ended. */
            cursor?: string | null;
            /** @description Most parts behind the prefix. */
            depth?: number | null;
            end?: components["schemas"]["Prefix"] | null;
            /** @description Without values. */
            keysOnly?: boolean | null;
            /** @description Most entries: 1 to 1000, by default 100. */
            limit?: number | null;
            orderBy?: components["schemas"]["OrderBy"] | null;
            prefix?: components["schemas"]["Prefix"] | null;
            /** @description From the end backwards. */
            reverse?: boolean | null;
            /** @description Without an index for `orderBy` the entries are sorted in memory. */
            sort?: boolean | null;
            start?: components["schemas"]["Prefix"] | null;
            where?: components["schemas"]["Filter"] | null;
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
        /**
         * @description How a message has ended.
         * @enum {string}
         */
        MessageEnd: "completed" | "dead" | "cancelled";
        /** @description A message of an atomic operation. */
        MessageOutcome: {
            deduplicated: boolean;
            /** @description The number of the message, or of the earlier one with its deduplication key. */
            id?: string | null;
        };
        /** @description The last progress of a message. */
        MessageProgress: {
            /** @description RFC 3339. */
            at: string;
            /**
             * Format: int32
             * @description The number of deliveries, including that of the handler which has told it.
             */
            attempts?: number | null;
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description How a message has ended. */
        MessageResult: {
            /** @description RFC 3339. */
            at: string;
            error?: string | null;
            /** @description The name of the error of its last delivery; of `dead` alone. */
            errorName?: string | null;
            state: components["schemas"]["MessageEnd"];
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /**
         * @description How a list finds its entries.
         * @enum {string}
         */
        MethodBody: "index" | "scan" | "sort";
        /** @description A change, or a message. */
        Mutation: {
            /**
             * Format: int64
             * @description When it is due, in ms since the epoch.
             */
            at?: number | null;
            /** @description Waiting times before the retries. */
            backoffSchedule?: components["schemas"]["BackoffTime"][] | null;
            /** @description How long it is kept when it is dead. */
            deadRetention?: (number | string) | null;
            /** @description With `enqueue`: what happens if that key is taken. */
            deduplication?: string | null;
            /** @description The queue holds at most one message with this key. */
            deduplicationKey?: string | null;
            /** @description Of `enqueue`, as the following ones: it is due after so long. */
            delay?: (number | string) | null;
            /** @description The entry expires after so long: ms, or a text like `1h`. */
            expireIn?: (number | string) | null;
            /** @description Its group, which takes turns with the other ones of the queue. */
            group?: string | null;
            /** @description How long its result and the entries about it are kept. */
            keepResult?: (number | string) | null;
            key?: components["schemas"]["NewKey"] | null;
            /** @description The keys that get its value when it dies, at most 10. */
            keysIfUndelivered?: unknown[][] | null;
            /** @description 0 to 9; the highest is delivered first. */
            priority?: number | null;
            /** @description Of `enqueue`: its queue. */
            queue?: string | null;
            /** @description The longest time of a handler of `listen`. */
            timeout?: (number | string) | null;
            type: components["schemas"]["MutationType"];
            /**
             * @description Not of `delete`. In the typed form `{"type":"uuidv7"}` is a string that the commit fills in. Of `sum`, `min` and `max` a number, or a typed bigint or `KvU64`; of `append`
             *     and `prepend` an array.
             */
            value?: unknown;
        };
        /**
         * @description The kind of a change.
         * @enum {string}
         */
        MutationType: "set" | "delete" | "sum" | "min" | "max" | "append" | "prepend" | "enqueue";
        /** @description The limits of a group. */
        NewGroupLimits: {
            /**
             * Format: int32
             * @description Messages that consumers have at the same time.
             */
            concurrency?: number | null;
            rate?: components["schemas"]["NewRate"] | null;
        };
        /** @description The description of an index. */
        NewIndex: {
            /** @description Of a full-text index: paths into the values, steps separated by dots. */
            fields?: string[] | null;
            /** @description Of a value index: each element of an array under the first path has an entry. */
            multi?: boolean | null;
            /** @description By default a literal of the prefix, and of a value index its paths. */
            name?: string | null;
            on?: components["schemas"]["IndexPaths"] | null;
            /** @description A key: the index covers the keys that extend it. */
            prefix?: unknown[] | null;
            /** @description Of a full-text index: lengths in characters of the beginnings of words that are indexed too. */
            prefixLengths?: number[] | null;
            /** @description Whether it replaces another index of its prefix or name, by default true. */
            replace?: boolean | null;
            /** @description Of a value index: an entry without a value under the first path is not in it. */
            sparse?: boolean | null;
            /** @description Of a full-text index: `auto`, by default; `unicode61`, `porter`, `ascii` or `trigram`. */
            tokenize?: string | null;
            /** @description `fulltext`, by default, or `value`. */
            type?: components["schemas"]["IndexType"];
            /** @description Of a value index: no two entries have the same values under all paths. */
            unique?: boolean | null;
        };
        NewKey: (components["schemas"]["KeyPart"] | {
            /** @enum {string} */
            type: "commitVersionstamp" | "uuidv7";
            value?: string;
        })[];
        /** @description The limits of a queue. One that is left out does not limit. */
        NewLimits: {
            /**
             * Format: int32
             * @description Messages that consumers have at the same time.
             */
            concurrency?: number | null;
            group?: components["schemas"]["NewGroupLimits"] | null;
            rate?: components["schemas"]["NewRate"] | null;
        };
        /** @description A message to enqueue. */
        NewMessage: {
            /**
             * Format: int64
             * @description When it is due, in ms since the epoch; not together with `delay`.
             */
            at?: number | null;
            /** @description Waiting times before the retries. */
            backoffSchedule?: components["schemas"]["BackoffTime"][] | null;
            /** @description How long it is kept when it is dead. */
            deadRetention?: (number | string) | null;
            /**
             * @description What happens if that key is taken: `drop` (nothing), `replace` (the message gets this value), `debounce`
             *     (and this due time), or `again` (if a consumer has the message, this one runs after it; else nothing).
             */
            deduplication?: string | null;
            /** @description The queue holds at most one message with this key. */
            deduplicationKey?: string | null;
            /** @description It is due after so long: ms, or a text like `5m`. */
            delay?: (number | string) | null;
            /** @description Its group, which takes turns with the other ones of the queue. Not for the default queue. */
            group?: string | null;
            /** @description How long its result and the entries about it are kept. Not for the default queue. */
            keepResult?: (number | string) | null;
            /** @description The keys that get its value when it dies, at most 10. */
            keysIfUndelivered?: unknown[][] | null;
            /** @description 0 to 9; the highest is delivered first. */
            priority?: number | null;
            /** @description The longest time of a handler of `listen`, at most a day. */
            timeout?: (number | string) | null;
            value: unknown;
        };
        /** @description So many deliveries in a time. */
        NewRate: {
            /** @description `fixed` (the default), `sliding` or `token-bucket`. */
            algorithm?: string | null;
            /**
             * Format: int32
             * @description Deliveries in `per`.
             */
            limit: number;
            per: (number | string) & Record<string, never>;
        };
        /** @description A schedule to set: a cron pattern or an interval, and what its messages are. */
        NewSchedule: {
            /** @description Waiting times before the retries. */
            backoffSchedule?: components["schemas"]["BackoffTime"][] | null;
            /** @description Five fields, or six with seconds in front; not together with `every`. */
            cron?: string | null;
            /** @description How long a message is kept when it is dead. */
            deadRetention?: (number | string) | null;
            /** @description What happens if that key is taken. */
            deduplication?: string | null;
            /** @description Of its messages, the queue holds at most one with this key. */
            deduplicationKey?: string | null;
            /** @description The interval: ms, or a text like `5m`. */
            every?: (number | string) | null;
            /** @description The group of its messages. */
            group?: string | null;
            /** @description How long the results of its messages are kept. */
            keepResult?: (number | string) | null;
            /** @description The keys that get the value of a message when it dies, at most 10. */
            keysIfUndelivered?: unknown[][] | null;
            /**
             * @description What happens for due times that no process could keep: `skip`, `once` (one message for all; the default), or
             *     `all`.
             */
            missed?: string | null;
            /** @description What is added to the multiples of the interval. */
            offset?: (number | string) | null;
            /** @description 0 to 9. */
            priority?: number | null;
            /** @description The IANA name of the pattern's time zone; by default `UTC`. */
            timeZone?: string | null;
            /** @description The longest time of a handler of `listen`. */
            timeout?: (number | string) | null;
            /** @description The value of its messages. */
            value: unknown;
        };
        Number: string;
        /** @description A path, or paths with their orders, the most significant first. */
        OrderBy: string | {
            [key: string]: "asc" | "desc";
        };
        /** @description A path with its order. */
        OrderedPath: {
            /** @description `asc` or `desc`. */
            order: components["schemas"]["Direction"];
            path: string;
        };
        /** @description A page of a list. */
        Page: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            entries: {
                /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
                expireAt?: string | null;
                key: components["schemas"]["Key"];
                /**
                 * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
                 *     read.
                 */
                value?: unknown;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Whether there is a next page. */
            hasMore: boolean;
        };
        /** @description What `GET /keys` answers. */
        PageOrEntry: components["schemas"]["Page"] | components["schemas"]["Entry"];
        /** @description A message that waits or is delivered. */
        PeekedMessage: {
            /**
             * Format: int32
             * @description Deliveries so far.
             */
            attempts: number;
            /** @description When it is due, or was due before its delivery. */
            dueAt: string;
            /** @description RFC 3339, as the other times. */
            enqueuedAt: string;
            /** @description Its group. */
            group?: string | null;
            id: string;
            /** @description The end of its consumer's lock; `null` without one. */
            lockedUntil?: string | null;
            /** Format: int32 */
            priority: number;
            /** @enum {string} */
            state: "pending" | "delayed" | "processing";
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A page of messages. */
        PeekedMessages: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            messages: components["schemas"]["PeekedMessage"][];
        };
        Prefix: components["schemas"]["KeyPart"][];
        /** @description What is below a prefix, in the part of the range that was read. */
        PrefixSize: {
            /**
             * Format: int64
             * @description Bytes of their keys and values, as they are stored.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Entries.
             */
            entries: number;
            /** @description A key, as a literal. */
            prefix: string;
        };
        /** @description The sizes of the prefixes in a part of a range, in the order of their keys. */
        PrefixSizes: {
            /** @description Where the rest of the range begins; `null` at its end. The first prefix of the rest may be the last one here. */
            cursor?: string | null;
            prefixes: components["schemas"]["PrefixSize"][];
        };
        /** @description The body of an error (RFC 9457). */
        Problem: {
            /** @description What happened, for programs. */
            code: string;
            /** @description For people; may change in any release. */
            detail: string;
            entry?: components["schemas"]["Entry"] | null;
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
        /** @description The answer of a change. */
        QueueChanged: {
            ok: boolean;
        };
        /** @description The messages of a queue, by state. */
        QueueStats: {
            /** Format: int64 */
            dead: number;
            /** Format: int64 */
            delayed: number;
            /** @description Whether the queue is paused. */
            paused: boolean;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            processing: number;
        };
        /** @description So many deliveries in a time. */
        Rate: {
            algorithm: string;
            /** Format: int32 */
            limit: number;
            /**
             * Format: int64
             * @description In ms.
             */
            per: number;
        };
        /** @description A poll of a queue. */
        Received: {
            message?: components["schemas"]["Delivery"] | null;
        };
        /** @description The answer of a requeue. */
        Requeued: {
            ok: boolean;
        };
        /** @description The answer of a requeue of many. */
        RequeuedLetters: {
            /**
             * Format: int64
             * @description The number of letters that the queue has left. Ask again while both numbers are above 0.
             */
            left: number;
            /**
             * Format: int64
             * @description The number of letters that this request has enqueued again.
             */
            requeued: number;
        };
        /** @description The rights of a token on the database. */
        Rights: {
            /** @description Whether it may write: false for a token that reads, and for a database that is read-only. */
            write: boolean;
        };
        /** @description A schedule. */
        Schedule: {
            /** @description Absent if it has an interval. */
            cron?: string | null;
            /**
             * Format: int64
             * @description In ms; absent if it has a cron pattern.
             */
            every?: number | null;
            missed: string;
            name: string;
            /** @description Its next due time, RFC 3339. */
            nextAt: string;
            /** Format: int64 */
            offset?: number | null;
            /** Format: int32 */
            priority: number;
            timeZone?: string | null;
            value?: unknown;
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description The answer of a change of a schedule. */
        ScheduleChanged: {
            /** @description Whether it has changed anything. */
            changed: boolean;
        };
        /** @description A page of schedules. */
        Schedules: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            schedules: components["schemas"]["Schedule"][];
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
             * @description `words`, by default: the query is any text, of which every word must be found. `query`: it has the syntax of
             *     the JavaScript API.
             */
            mode?: ("words" | "query") | null;
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
            entries: {
                /** @description RFC 3339; absent for an entry that does not expire, `null` if it no longer does. */
                expireAt?: string | null;
                key: components["schemas"]["Key"];
                /**
                 * @description Absent where only keys are asked for, where only the expiry has changed, and where it cannot be
                 *     read.
                 */
                value?: unknown;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Of all keys, in their order: the `versionstamps` of the next request. */
            versionstamps: (components["schemas"]["Versionstamp"] | null)[];
        };
        /** @description A full-text index. */
        TextIndex: {
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
        /** @description The entries of keys. */
        TypedBatch: {
            /** @description In the order of the keys; without an entry, value and versionstamp are `null`. */
            entries: {
                /**
                 * Format: int64
                 * @description Ms since the epoch.
                 */
                expireAt?: number | null;
                key: components["schemas"]["TypedKey"];
                value?: components["schemas"]["TypedValue"] | null;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
        };
        /** @description The changes since a commit. */
        TypedChanges: {
            /** @description In the order of commits; without an entry any more, value and versionstamp are `null`. */
            entries: {
                /**
                 * Format: int64
                 * @description Ms since the epoch.
                 */
                expireAt?: number | null;
                key: components["schemas"]["TypedKey"];
                value?: components["schemas"]["TypedValue"] | null;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Changes after `since` are no longer logged: read the entries, then go on. */
            gap: boolean;
            /** @description The `since` of the next request. */
            versionstamp: components["schemas"]["Versionstamp"];
        };
        /** @description A dead letter. */
        TypedDeadLetter: {
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
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A page of dead letters. */
        TypedDeadLetters: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            messages: components["schemas"]["TypedDeadLetter"][];
        };
        /** @description A delivered message. */
        TypedDelivery: {
            /**
             * Format: int32
             * @description The number of deliveries, including this one.
             */
            attempts: number;
            /**
             * Format: int32
             * @description The number of deliveries that can follow, if this one fails.
             */
            attemptsLeft: number;
            /** @description RFC 3339. */
            enqueuedAt: string;
            /** @description Its group. */
            group?: string | null;
            id: string;
            /** @description Names the delivery when it ends. */
            lock: string;
            /** @description The trace context of the enqueue, as the headers of W3C Trace Context. */
            traceparent?: string | null;
            /** @description That of the enqueue. */
            tracestate?: string | null;
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description An entry in `application/vnd.openkv+json`. */
        TypedEntry: {
            /**
             * Format: int64
             * @description Ms since the epoch.
             */
            expireAt?: number | null;
            key: components["schemas"]["TypedKey"];
            value?: components["schemas"]["TypedValue"] | null;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        };
        /** @description What a commit has made of an entry. */
        TypedEntryVersion: {
            /** @description RFC 3339; `null` for a commit before the beginning of the history. */
            committedAt?: string | null;
            /** @description RFC 3339; `null` without an expiry. */
            expireAt?: string | null;
            /**
             * @description `set`: the commit has stored the value; `expiry`: it has changed the expiry alone; `delete`: it has removed
             *     the entry.
             */
            type: components["schemas"]["VersionType"];
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            } | null;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp: components["schemas"]["Versionstamp"];
        };
        /** @description A page of the versions of an entry. */
        TypedEntryVersions: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            versions: components["schemas"]["TypedEntryVersion"][];
        };
        /** @description An entry that a search has found. */
        TypedFoundEntry: {
            /**
             * Format: int64
             * @description Ms since the epoch.
             */
            expireAt?: number | null;
            key: components["schemas"]["TypedKey"];
            value?: components["schemas"]["TypedValue"] | null;
            valueError?: components["schemas"]["ValueError"] | null;
            versionstamp?: components["schemas"]["Versionstamp"] | null;
        } & {
            /** @description With `highlight`: a snippet of each field with a match, by field. */
            highlights?: Record<string, never>;
            /**
             * Format: double
             * @description BM25: larger is better. Comparable within one answer only.
             */
            score: number;
        };
        TypedKey: components["schemas"]["TypedKeyPart"][];
        TypedKeyPart: {
            /** @enum {string} */
            type: "string";
            value: string;
        } | {
            /** @enum {string} */
            type: "number";
            value: number | ("NaN" | "Infinity" | "-Infinity" | "-0");
        } | {
            /** @enum {string} */
            type: "bigint";
            value: string;
        } | {
            /** @enum {string} */
            type: "boolean";
            value: boolean;
        } | {
            /** @enum {string} */
            type: "Uint8Array";
            /** @description base64url */
            value: string;
        };
        /** @description The last progress of a message. */
        TypedMessageProgress: {
            /** @description RFC 3339. */
            at: string;
            /**
             * Format: int32
             * @description The number of deliveries, including that of the handler which has told it.
             */
            attempts?: number | null;
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description How a message has ended. */
        TypedMessageResult: {
            /** @description RFC 3339. */
            at: string;
            error?: string | null;
            /** @description The name of the error of its last delivery; of `dead` alone. */
            errorName?: string | null;
            state: components["schemas"]["MessageEnd"];
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A page of a list. */
        TypedPage: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            entries: {
                /**
                 * Format: int64
                 * @description Ms since the epoch.
                 */
                expireAt?: number | null;
                key: components["schemas"]["TypedKey"];
                value?: components["schemas"]["TypedValue"] | null;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Whether there is a next page. */
            hasMore: boolean;
        };
        /** @description The same in `application/vnd.openkv+json`. */
        TypedPageOrEntry: components["schemas"]["TypedPage"] | components["schemas"]["TypedEntry"];
        /** @description A message that waits or is delivered. */
        TypedPeekedMessage: {
            /**
             * Format: int32
             * @description Deliveries so far.
             */
            attempts: number;
            /** @description When it is due, or was due before its delivery. */
            dueAt: string;
            /** @description RFC 3339, as the other times. */
            enqueuedAt: string;
            /** @description Its group. */
            group?: string | null;
            id: string;
            /** @description The end of its consumer's lock; `null` without one. */
            lockedUntil?: string | null;
            /** Format: int32 */
            priority: number;
            /** @enum {string} */
            state: "pending" | "delayed" | "processing";
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A page of messages. */
        TypedPeekedMessages: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            messages: components["schemas"]["TypedPeekedMessage"][];
        };
        /** @description A poll of a queue. */
        TypedReceived: {
            message?: components["schemas"]["TypedDelivery"] | null;
        };
        /** @description A schedule. */
        TypedSchedule: {
            /** @description Absent if it has an interval. */
            cron?: string | null;
            /**
             * Format: int64
             * @description In ms; absent if it has a cron pattern.
             */
            every?: number | null;
            missed: string;
            name: string;
            /** @description Its next due time, RFC 3339. */
            nextAt: string;
            /** Format: int64 */
            offset?: number | null;
            /** Format: int32 */
            priority: number;
            timeZone?: string | null;
            /** @description docs/format.md, section 5 */
            value?: {
                type: string;
            };
            valueError?: components["schemas"]["ValueError"] | null;
        };
        /** @description A page of schedules. */
        TypedSchedules: {
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            hasMore: boolean;
            schedules: components["schemas"]["TypedSchedule"][];
        };
        /** @description A page of a search. */
        TypedSearchPage: {
            /** @description False while the index is being built: older entries may be missing. */
            complete: boolean;
            /** @description Where the next page begins; `null` at the end. */
            cursor?: string | null;
            /** @description Best first. */
            entries: components["schemas"]["TypedFoundEntry"][];
            /** @description Whether there is a next page. */
            hasMore: boolean;
        };
        /** @description The states of keys. */
        TypedStates: {
            /** @description Those that differ from `versionstamps`; without an entry, value and versionstamp are `null`. */
            entries: {
                /**
                 * Format: int64
                 * @description Ms since the epoch.
                 */
                expireAt?: number | null;
                key: components["schemas"]["TypedKey"];
                value?: components["schemas"]["TypedValue"] | null;
                valueError?: components["schemas"]["ValueError"] | null;
                versionstamp?: components["schemas"]["Versionstamp"] | null;
            }[];
            /** @description Of all keys, in their order: the `versionstamps` of the next request. */
            versionstamps: (components["schemas"]["Versionstamp"] | null)[];
        };
        /** @description docs/format.md, section 5 */
        TypedValue: {
            type: string;
        };
        /** @description Why the value of an entry or of a message cannot be read. The other members are as they are stored. */
        ValueError: {
            /** @description What happened, for programs. */
            code: string;
            /** @description For people; may change in any release. */
            detail: string;
        };
        /** @description A value index. */
        ValueIndex: {
            failure?: components["schemas"]["IndexFailure"] | null;
            /**
             * Format: int64
             * @description The number of such entries that were read.
             */
            indexed: number;
            multi: boolean;
            name: string;
            on: components["schemas"]["OrderedPath"][];
            prefix: unknown[];
            sparse: boolean;
            /**
             * @description `building` while entries older than the index are being added, then `ready`; `failed` if two of them have one
             *     value of a unique index, or one has a value that cannot be unique.
             */
            state: string;
            unique: boolean;
        };
        /** @enum {string} */
        VersionType: "set" | "expiry" | "delete";
        Versionstamp: string;
        /** @description The answer of a write. */
        Written: {
            ok: boolean;
            versionstamp: components["schemas"]["Versionstamp"];
        };
    };
    responses: {
        /** @description Bad Request */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Conflict */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Forbidden */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Internal Server Error */
        InternalServerError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Misdirected Request */
        MisdirectedRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Not Acceptable */
        NotAcceptable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Payload Too Large */
        PayloadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Request Timeout */
        RequestTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too Many Requests */
        TooManyRequests: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unauthorized */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unprocessable Entity */
        UnprocessableEntity: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unsupported Media Type */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["AtomicBody"];
                "application/vnd.openkv+json": components["schemas"]["AtomicBody"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            /** @description The copy of `if-match` is no longer there. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            /** @description The range begins behind the end of the copy. */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listEntryVersions: {
        parameters: {
            query: {
                /** @description The key of the entry. */
                key: string;
                /** @description Most versions: 1 to 100, by default 100. */
                limit?: number;
                /** @description Where the page before this one ended: only older versions than this one. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of versions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["EntryVersions"];
                    "application/vnd.openkv+json": components["schemas"]["TypedEntryVersions"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            /** @description The database keeps no history. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["NewIndex"];
                "application/vnd.openkv+json": components["schemas"]["NewIndex"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                /** @description Most parts behind the prefix; longer keys are left out. */
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["PageOrEntry"];
                    "application/octet-stream": components["schemas"]["Binary"];
                    "application/vnd.openkv+json": components["schemas"]["TypedPageOrEntry"];
                };
            };
            /** @description The entry is the one of If-None-Match. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no entry of `key`. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            406: components["responses"]["NotAcceptable"];
            /** @description The entry of `key` is not as If-Match says. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    putEntryOfKey: {
        parameters: {
            query: {
                /** @description The key, as a literal of the command line. */
                key: string;
                /** @description The entry expires in so many ms. */
                expireIn?: number | string;
                /** @description The same. */
                expiresIn?: number | string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The value. */
        requestBody: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": unknown;
                "application/octet-stream": components["schemas"]["Binary"];
                "application/vnd.openkv+json": components["schemas"]["TypedValue"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            /** @description The entry is not as the conditions say. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteEntryOfKey: {
        parameters: {
            query: {
                /** @description The key, as a literal of the command line. */
                key: string;
                /** @description Also all entries below the key: by default only with `where`. */
                descendants?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeleteBody"] | null;
                "application/vnd.openkv+json": components["schemas"]["DeleteBody"] | null;
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            /** @description The entry is not as the conditions say. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["BatchBody"];
                "application/vnd.openkv+json": components["schemas"]["BatchBody"];
            };
        };
        responses: {
            /** @description An entry for each key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Batch"];
                    "application/vnd.openkv+json": components["schemas"]["TypedBatch"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["CountBody"];
                "application/vnd.openkv+json": components["schemas"]["CountBody"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeleteBatchBody"];
                "application/vnd.openkv+json": components["schemas"]["DeleteBatchBody"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    explain: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["ListBody"];
                "application/vnd.openkv+json": components["schemas"]["ListBody"];
            };
        };
        responses: {
            /** @description What the list reads. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["ListBody"];
                "application/vnd.openkv+json": components["schemas"]["ListBody"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Page"];
                    "application/vnd.openkv+json": components["schemas"]["TypedPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    paginateByQuery: {
        parameters: {
            query?: {
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
                /** @description Most parts behind the prefix; longer keys are left out. */
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Page"];
                    "application/vnd.openkv+json": components["schemas"]["TypedPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["ListBody"];
                "application/vnd.openkv+json": components["schemas"]["ListBody"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Page"];
                    "application/vnd.openkv+json": components["schemas"]["TypedPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                    /** @description The versionstamp, in quotes. */
                    etag?: string;
                    /** @description When it expires, in RFC 3339. */
                    "openkv-expire-at"?: string;
                    /** @description `true` if JSON simplifies the value. */
                    "openkv-lossy"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Entry"];
                    "application/octet-stream": components["schemas"]["Binary"];
                    "application/vnd.openkv+json": components["schemas"]["TypedEntry"];
                };
            };
            /** @description The entry is the one of If-None-Match. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no entry. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            406: components["responses"]["NotAcceptable"];
            /** @description The entry is not as If-Match says. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    putEntry: {
        parameters: {
            query?: {
                /** @description The entry expires in so many ms. */
                expireIn?: number | string;
                /** @description The same. */
                expiresIn?: number | string;
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": unknown;
                "application/octet-stream": components["schemas"]["Binary"];
                "application/vnd.openkv+json": components["schemas"]["TypedValue"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            /** @description The entry is not as the conditions say. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteEntry: {
        parameters: {
            query?: {
                /** @description Also all entries below the key: by default only with `where`. */
                descendants?: boolean;
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeleteBody"] | null;
                "application/vnd.openkv+json": components["schemas"]["DeleteBody"] | null;
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            /** @description The entry is not as the conditions say. */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            /** @description The counters, as `kv.metrics()` has them, without `slowest` for a token with the rights `metrics`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeliveryEnd"];
                "application/vnd.openkv+json": components["schemas"]["DeliveryEnd"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["DeadLetters"];
                    "application/vnd.openkv+json": components["schemas"]["TypedDeadLetters"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    requeueDeadLetters: {
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
            /** @description How many are enqueued again, and how many are left. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequeuedLetters"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["DeadLetter"];
                    "application/vnd.openkv+json": components["schemas"]["TypedDeadLetter"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such dead letter. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such dead letter. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such dead letter. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    drainQueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Also those that are not due yet. */
                delayed?: boolean;
                /** @description Only those of this group. */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of deleted messages. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["NewMessage"];
                "application/vnd.openkv+json": components["schemas"]["NewMessage"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    queueEvents: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
                /** @description The id of the last event that was received; without it, from now on. */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events: events, ping, gap. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeliveryExtension"];
                "application/vnd.openkv+json": components["schemas"]["DeliveryExtension"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listGroups: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
                /** @description Most groups: 1 to 1000, by default 100. */
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
            /** @description A page of groups. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Groups"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getLimits: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The limits. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limits"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    setLimits: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["NewLimits"];
                "application/vnd.openkv+json": components["schemas"]["NewLimits"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitsChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listen: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Ms until another consumer gets a message that is not acknowledged. */
                lockDuration?: number | string;
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    peekMessages: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Only messages in this state. */
                state?: "pending" | "delayed" | "processing";
                /** @description Most messages: 1 to 1000, by default 100. */
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
            /** @description A page of messages. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["PeekedMessages"];
                    "application/vnd.openkv+json": components["schemas"]["TypedPeekedMessages"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteMessage: {
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such message. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description A consumer has the message. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    cancelMessage: {
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
            /** @description Cancelled. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such message. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    messageProgress: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
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
            /** @description Its last progress. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["MessageProgress"];
                    "application/vnd.openkv+json": components["schemas"]["TypedMessageProgress"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description Its handlers have told none, or it is not kept any more. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    messageResult: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
                /** @description Wait so many ms for its end. */
                wait?: number | string;
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
            /** @description How it has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["MessageResult"];
                    "application/vnd.openkv+json": components["schemas"]["TypedMessageResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description It has not ended, or its result is not kept: `keepResult` of the enqueue says for how long. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeliveryFailure"];
                "application/vnd.openkv+json": components["schemas"]["DeliveryFailure"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    pauseQueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Only this group of it. */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue is paused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    pollQueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Ms until another consumer gets the message. */
                lockDuration?: number | string;
                /** @description Wait so many ms for a message. */
                wait?: number | string;
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Received"];
                    "application/vnd.openkv+json": components["schemas"]["TypedReceived"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    tellProgress: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["DeliveryProgress"];
                "application/vnd.openkv+json": components["schemas"]["DeliveryProgress"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    resumeQueue: {
        parameters: {
            query?: {
                /** @description The name of the queue. */
                queue?: string;
                /** @description Only this group of it. */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue is not paused. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSchedules: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
                /** @description Most schedules: 1 to 1000, by default 100. */
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
            /** @description A page of schedules. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Schedules"];
                    "application/vnd.openkv+json": components["schemas"]["TypedSchedules"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    setSchedule: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
            };
            header?: never;
            path: {
                /** @description Its name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["NewSchedule"];
                "application/vnd.openkv+json": components["schemas"]["NewSchedule"];
            };
        };
        responses: {
            /** @description Set. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeSchedule: {
        parameters: {
            query: {
                /** @description The name of the queue. */
                queue: string;
            };
            header?: never;
            path: {
                /** @description Its name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The queue has no such schedule. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rights: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rights of the token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rights"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    searchByQuery: {
        parameters: {
            query: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description Words; with `mode=query` a query as in the JavaScript API. */
                query: string;
                /** @description `words`, by default: any text, of which every word must be found. `query`: the syntax of the JavaScript API. */
                mode?: "words" | "query";
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["SearchPage"];
                    "application/vnd.openkv+json": components["schemas"]["TypedSearchPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
                "application/cbor": components["schemas"]["Binary"];
                "application/json": components["schemas"]["Search"];
                "application/vnd.openkv+json": components["schemas"]["Search"];
            };
        };
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["SearchPage"];
                    "application/vnd.openkv+json": components["schemas"]["TypedSearchPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    sizes: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description Parts of a prefix behind `prefix`, by default 1. */
                depth?: number;
                /** @description Where the part before this one ended. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sizes of the prefixes in a part of the range. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrefixSizes"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    poll: {
        parameters: {
            query: {
                /** @description Keys as literals: `[["users",1],["config"]]`, or one key. */
                keys: string;
                /** @description Those of the last answer, with commas; `null` for no entry. */
                versionstamps?: string;
                /** @description Wait so many ms for a difference. */
                wait?: number | string;
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["States"];
                    "application/vnd.openkv+json": components["schemas"]["TypedStates"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    watchPrefix: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description Begin with the present entries. */
                initial?: boolean;
                /** @description An event ends after so many changes, at the end of a commit. */
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
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    pollPrefix: {
        parameters: {
            query?: {
                /** @description A key, as a literal. */
                prefix?: string;
                /** @description The versionstamp of the last answer; without it, the answer has the present one. */
                since?: string;
                /** @description The answer ends after so many changes, at the end of a commit. */
                limit?: number;
                /** @description Wait so many ms for a change. */
                wait?: number | string;
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
                    "application/cbor": components["schemas"]["Binary"];
                    "application/json": components["schemas"]["Changes"];
                    "application/vnd.openkv+json": components["schemas"]["TypedChanges"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
}
