//! The verbs of calls: the numbers by which a frame says what it asks for.

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        /// What a call asks for. The numbers are the contract's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Verb { $($(#[$doc])* $name = $number,)* }

        impl Verb {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The verb of that number.
            ///
            /// ```
            /// use openkv::codec::frame::Verb;
            /// assert_eq!(Verb::from_number(10), Some(Verb::Count));
            /// assert_eq!(Verb::from_number(0), None);
            /// ```
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

verbs! {
    /// Moves the log into the file.
    Checkpoint = 1;
    /// How large the database is.
    Stats = 2;
    /// Gives free pages back.
    Vacuum = 3;
    /// What has been counted.
    Metrics = 4;
    /// Copies the file to a path.
    Backup = 5;
    /// How far a backup is.
    BackupProgress = 6;
    /// Examines the file.
    Check = 7;
    /// How many entries.
    Count = 10;
    /// A step of a list with conditions.
    Scan = 11;
    /// When an entry ends.
    Ttl = 12;
    /// Deletes many entries.
    DeleteMany = 13;
    /// Entries with their ends.
    Entries = 14;
    /// What a write would leave.
    Preview = 19;
    /// Ends a received message.
    Settle = 30;
    /// Makes the lock of a received message go on.
    Extend = 31;
    /// How full a queue is.
    QueueStats = 32;
    /// A page of dead messages.
    DeadList = 33;
    /// A dead message.
    DeadGet = 34;
    /// Puts a dead message back into its queue.
    DeadRequeue = 35;
    /// Deletes a dead message.
    DeadDelete = 36;
    /// Deletes dead messages by their age, one step.
    DeadPurge = 37;
    /// What a consumer elsewhere tells of its messages and its places.
    Held = 38;
    /// Ends the stream of a consumer elsewhere, or its wait for a message.
    ConsumeEnd = 39;
    /// Whether all that was settled has been told to the server.
    Told = 40;
    /// Makes a full-text index.
    CreateIndex = 50;
    /// Drops one.
    DropIndex = 51;
    /// Shows them.
    ListIndexes = 52;
    /// Searches.
    Search = 53;
}

impl Verb {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}
