//! Decides, without I/O, what to do about the archiver of one database.

/// The state of a database, as the keeper sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseState {
    /// Whether it is to be archived.
    pub(super) is_wanted: bool,
    /// Whether its clients have it open.
    pub(super) is_open: bool,
    /// Whether its file has changed since it was archived.
    pub(super) has_changed: bool,
    /// Whether the pause after a failure is over.
    pub(super) is_due: bool,
    /// How many databases may be opened in addition now.
    pub(super) visits_left: usize,
}

/// The archiver of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Archiver {
    None,
    Runs {
        /// Whether it does what is wanted now.
        is_same: bool,
        /// Whether the database is open for it alone.
        is_visit: bool,
        /// Whether it has everything.
        is_settled: bool,
        /// Whether its end was requested.
        is_stopping: bool,
    },
    Ended,
}

/// The next step for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Start one beside the clients.
    Follow,
    /// Open the database, start one, and close it again.
    Visit,
    /// Ask it to archive what is left, and to end.
    Stop,
    /// Clients have opened the database: it goes on beside them.
    Stay,
    /// Note how it has ended.
    Note,
}

/// Decides what to do about the archiver of a database.
pub(super) fn step(seen: DatabaseState, archiver: Archiver) -> Step {
    match archiver {
        Archiver::Ended => Step::Note,
        Archiver::Runs { is_stopping: true, .. } => Step::Nothing,
        Archiver::Runs { is_same: false, .. } => Step::Stop,
        Archiver::Runs { .. } if !seen.is_wanted => Step::Stop,
        Archiver::Runs { is_visit: true, .. } if seen.is_open => Step::Stay,
        Archiver::Runs { is_visit: true, is_settled: true, .. } => Step::Stop,
        Archiver::Runs { .. } => Step::Nothing,
        Archiver::None if !seen.is_wanted || !seen.is_due => Step::Nothing,
        Archiver::None if seen.is_open => Step::Follow,
        Archiver::None if seen.has_changed && seen.visits_left > 0 => Step::Visit,
        Archiver::None => Step::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: DatabaseState = DatabaseState {
        is_wanted: true,
        is_open: true,
        has_changed: true,
        is_due: true,
        visits_left: 1,
    };
    const CLOSED: DatabaseState = DatabaseState { is_open: false, ..SEEN };

    fn runs(is_visit: bool, is_settled: bool) -> Archiver {
        Archiver::Runs { is_same: true, is_visit, is_settled, is_stopping: false }
    }

    #[test]
    fn an_open_database_has_an_archiver_beside_its_clients() {
        assert_eq!(step(SEEN, Archiver::None), Step::Follow);
        assert_eq!(step(SEEN, runs(false, true)), Step::Nothing);
        assert_eq!(step(CLOSED, runs(false, true)), Step::Nothing);
        assert_eq!(step(DatabaseState { is_wanted: false, ..SEEN }, runs(false, true)), Step::Stop);
        assert_eq!(step(DatabaseState { is_wanted: false, ..SEEN }, Archiver::None), Step::Nothing);
        assert_eq!(step(DatabaseState { is_due: false, ..SEEN }, Archiver::None), Step::Nothing);
        assert_eq!(step(SEEN, Archiver::Ended), Step::Note);
    }

    #[test]
    fn a_changed_file_that_nobody_uses_is_visited_a_few_at_a_time() {
        assert_eq!(step(CLOSED, Archiver::None), Step::Visit);
        assert_eq!(step(DatabaseState { visits_left: 0, ..CLOSED }, Archiver::None), Step::Nothing);
        assert_eq!(
            step(DatabaseState { has_changed: false, ..CLOSED }, Archiver::None),
            Step::Nothing
        );
        assert_eq!(step(CLOSED, runs(true, false)), Step::Nothing);
        assert_eq!(step(CLOSED, runs(true, true)), Step::Stop);
        assert_eq!(step(SEEN, runs(true, true)), Step::Stay);
        assert_eq!(step(SEEN, runs(true, false)), Step::Stay);
    }

    #[test]
    fn another_policy_ends_the_archiver_first() {
        let other = Archiver::Runs {
            is_same: false,
            is_visit: false,
            is_settled: true,
            is_stopping: false,
        };
        assert_eq!(step(SEEN, other), Step::Stop);
        let stopping =
            Archiver::Runs { is_same: false, is_visit: true, is_settled: true, is_stopping: true };
        assert_eq!(step(SEEN, stopping), Step::Nothing);
    }
}
