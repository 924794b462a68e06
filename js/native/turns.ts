// Duty: calls back at the end of a turn of the event loop.

/** Is informed when the turn of the event loop ends. */
export interface TurnMember {
  endTurn(): void;
}

/** Says when the turn of the event loop ends. */
export interface Turns {
  /** Calls `endTurn` at the end of the turn. A member adds itself once per turn. */
  atTurnEnd(member: TurnMember): void;
}
