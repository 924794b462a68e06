// Duty: how the methods of a replica refuse what they cannot do.

const OWN_TESTS = "a local database has no replica: __test__/replica has its refusals";
const row = { closed: OWN_TESTS, wrong: OWN_TESTS, over: OWN_TESTS, misspelt: OWN_TESTS };

export default {
  "KvReplica.status": row,
  "KvReplica.ready": row,
  "KvReplica.reached": row,
};
