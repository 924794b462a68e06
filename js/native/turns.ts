// Duty: the end of a turn of the event loop, for those who have something to do then.

/** Is informed when the turn of the event loop ends. */
export interface TurnMember {
  endTurn(): void;
}

/** Says when the turn of the event loop ends. */
export interface Turns {
  /** Calls `endTurn` at the end of the turn. A member adds itself once per turn. */
  atTurnEnd(member: TurnMember): void;
}
