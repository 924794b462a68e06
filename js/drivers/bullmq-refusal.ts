// Duty: the errors of operations, with the codes and in the words that BullMQ's other backends have: its Worker
// and applications look at them.

/** Why an operation is refused. The numbers are those of BullMQ's ErrorCode. */
export const REFUSAL = {
  missingJob: -1,
  missingLock: -2,
  notInState: -3,
  pendingChildren: -4,
  missingParent: -5,
  otherLock: -6,
  otherParent: -7,
  ofScheduler: -8,
  failedChildren: -9,
  schedulerCollision: -10,
  schedulerBusy: -11,
} as const;

export type Refusal = (typeof REFUSAL)[keyof typeof REFUSAL];

interface About {
  command: string;
  jobId?: string | undefined;
  parentKey?: string | undefined;
  state?: string | undefined;
}

/** The error of a refused operation. */
export function refusal(code: Refusal, about: About): Error & { code: number } {
  const error = new Error(wordsOf(code, about));
  if (code === REFUSAL.failedChildren) error.name = "UnrecoverableError";
  return Object.assign(error, { code });
}

function wordsOf(code: Refusal, { command, jobId, parentKey, state }: About): string {
  switch (code) {
    case REFUSAL.missingJob:
      return `Missing key for job ${jobId}. ${command}`;
    case REFUSAL.missingLock:
      return `Missing lock for job ${jobId}. ${command}`;
    case REFUSAL.notInState:
      return `Job ${jobId} is not in the ${state} state. ${command}`;
    case REFUSAL.pendingChildren:
      return `Job ${jobId} has pending dependencies. ${command}`;
    case REFUSAL.missingParent:
      return `Missing key for parent job ${parentKey}. ${command}`;
    case REFUSAL.otherLock:
      return `Lock mismatch for job ${jobId}. Cmd ${command} from ${state}`;
    case REFUSAL.otherParent:
      return `The parent job ${parentKey} cannot be replaced. ${command}`;
    case REFUSAL.ofScheduler:
      return `Job ${jobId} belongs to a job scheduler and cannot be removed directly. ${command}`;
    case REFUSAL.failedChildren:
      return `Cannot complete job ${jobId} because it has at least one failed child. ${command}`;
    case REFUSAL.schedulerCollision:
      return `Cannot create job scheduler iteration - job ID already exists. ${command}`;
    case REFUSAL.schedulerBusy:
      return `Cannot create job scheduler iteration - current and next time slots already have jobs. ${command}`;
  }
}
