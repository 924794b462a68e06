// Duty: how the methods of an archiver refuse what they cannot do.

const NO_ARGUMENTS = "it takes no arguments";
const ENDS_WITH_THE_HANDLE =
  "closing the handle ends the archiver; its status stays, and stopping it again is no error";
const row = {
  closed: ENDS_WITH_THE_HANDLE,
  wrong: NO_ARGUMENTS,
  over: NO_ARGUMENTS,
  misspelt: NO_ARGUMENTS,
};

export default {
  "KvArchive.status": row,
  "KvArchive.stop": row,
};
