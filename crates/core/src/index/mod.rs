//! Value indexes: the entries of an index, and the lists that read them.
//!
//! Duty: derive the entries of an index from the bytes of a value; decide which ranges of which index
//! a list reads, and put what it finds there in order.
//! Invariant: each entry of a database that meets a condition has an entry of the index in the ranges
//! that are planned for the condition. The ranges may have more: a list still applies its filter. What
//! an index cannot compare (an object, several values, a value that cannot be read) is in the class
//! `OTHER`, which belongs to every plan.
//! Never: I/O, or a decision about the meaning of a condition: `filter` has it.

mod code;
mod defect;
mod entry;
mod explain;
mod gather;
mod plan;
#[cfg(test)]
mod tests;

pub use defect::IndexDefect;
pub use entry::Part;
pub use entry::{ChangeEntry, EntryChange, Replacement, Unfit, ValueIndex, changes, not_unique};
pub use explain::{
    Explanation, Method, PathBounds, ReadBranch, branch_of_order, branches_of_keys, why_no_index,
};
pub use gather::{
    Gathered, Ordered, WalkEntries, gather, gather_ordered, order_code, position_mark,
};
pub use plan::{EntryRange, KeyPlan, OrderPlan, parse_paths, plan_keys, plan_order};
