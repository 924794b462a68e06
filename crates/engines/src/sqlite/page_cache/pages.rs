//! Which pages a cache has, and which of them makes room for another.
//!
//! Duty: find a page by its number with one read of memory, for which a get at random from a large file waits more than for
//! anything else. Pages that were asked for once are replaced before those that were asked for again, so a long read leaves
//! the upper pages of a tree where they are.
//! Invariant: a pinned page stays until SQLite discards it.
//! Never: a call of SQLite, or the memory of a page.

/// Whether a cache may make a page that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    No,
    /// Unless nearly all pages are pinned: SQLite unpins some then, and asks with `Always`.
    IfEasy,
    Always,
}

/// A page of the table. Numbers begin at 1: an entry with 0 is none.
#[derive(Clone, Copy)]
struct Entry<P> {
    number: u32,
    /// SQLite uses the page.
    pinned: bool,
    /// The page was asked for again since the search for a page to replace has passed it.
    again: bool,
    page: Option<P>,
}

impl<P> Entry<P> {
    const NONE: Self = Self { number: 0, pinned: false, again: false, page: None };

    fn is_none(&self) -> bool {
        self.number == 0
    }
}

/// Entries of the first table.
const TABLE_MIN: usize = 64;
/// A table of more entries is large.
const TABLE_LARGE: usize = 4096;
/// A large table is sparse with more than so many entries a page. A full one has two to four.
const TABLE_SPARSE: usize = 16;
/// 2³² divided by the golden ratio, by which neighbours are spread over a table.
const SPREAD: u32 = 0x9E37_79B1;

/// The pages of a cache; `P` is the memory of one.
pub(super) struct Pages<P> {
    /// Whether pages are replaced: those of a database in memory are not.
    replaces: bool,
    /// How many pages there should be at most.
    bound: usize,
    used: usize,
    pinned: usize,
    /// No page has a greater number.
    highest: u32,
    /// The entry of a page is at the hash of its number, or behind that without a gap. At least half of all are none.
    table: Vec<Entry<P>>,
    /// The next entry that may be replaced.
    hand: usize,
}

impl<P: Copy> Pages<P> {
    pub(super) fn new(replaces: bool) -> Self {
        Self { replaces, bound: 0, used: 0, pinned: 0, highest: 0, table: Vec::new(), hand: 0 }
    }

    /// The number of pages, pinned or not.
    pub(super) fn count(&self) -> usize {
        self.used
    }

    pub(super) fn set_bound(&mut self, bound: usize, mut free: impl FnMut(P)) {
        self.bound = bound;
        while self.replaces
            && self.used > bound
            && let Some(page) = self.replace_one()
        {
            free(page);
        }
    }

    /// The page with a number, which is not pinned by this.
    pub(super) fn peek(&mut self, number: u32) -> Option<P> {
        let at = self.find(number)?;
        let entry = self.table.get_mut(at)?;
        entry.again = true;
        entry.page
    }

    /// Pins the page with a number.
    pub(super) fn pin(&mut self, number: u32) -> Option<P> {
        let at = self.find(number)?;
        let entry = self.table.get_mut(at)?;
        self.pinned += usize::from(!entry.pinned);
        (entry.pinned, entry.again) = (true, true);
        entry.page
    }

    pub(super) fn may_make(&self, make: Make) -> bool {
        match make {
            Make::No => false,
            Make::IfEasy => !self.replaces || self.pinned < self.bound - self.bound / 10,
            Make::Always => true,
        }
    }

    /// The memory of the page that the next one replaces, if there are as many as there should be.
    pub(super) fn replace_at_bound(&mut self) -> Option<P> {
        if self.replaces && self.used + 1 >= self.bound { self.replace_one() } else { None }
    }

    /// Adds a page, pinned, whose number none has. Returns whether there was memory to note it.
    pub(super) fn add(&mut self, number: u32, page: P) -> bool {
        if !self.reserve_entry() {
            return false;
        }
        self.insert(Entry { number, pinned: true, again: false, page: Some(page) });
        (self.used, self.pinned) = (self.used + 1, self.pinned + 1);
        self.highest = self.highest.max(number);
        true
    }

    /// SQLite no longer uses the page with a number. Returns the page if it is gone.
    pub(super) fn unpin(&mut self, number: u32, discard: bool) -> Option<P> {
        let at = self.find(number)?;
        if discard || (self.replaces && self.used > self.bound) {
            return self.remove(at);
        }
        let entry = self.table.get_mut(at)?;
        self.pinned -= usize::from(entry.pinned);
        entry.pinned = false;
        None
    }

    /// Gives a page another number. Returns the page that had it, which is gone.
    pub(super) fn renumber(&mut self, from: u32, to: u32) -> Option<P> {
        let replaced = self.find(to).and_then(|at| self.remove(at));
        if let Some(at) = self.find(from) {
            let entry = self.take(at);
            self.insert(Entry { number: to, ..entry });
            self.highest = self.highest.max(to);
        }
        replaced
    }

    /// Removes the pages from a number on, pinned ones too. Returns whether none is left, and there were far fewer than once: then
    /// the memory of pages is not needed soon.
    pub(super) fn truncate(&mut self, from: u32, mut free: impl FnMut(P)) -> bool {
        if from > self.highest {
            return false;
        }
        self.highest = from.saturating_sub(1);
        if from <= 1 {
            return self.clear(free);
        }
        let mut at = 0;
        while let Some(entry) = self.table.get(at) {
            if entry.is_none() || entry.number < from {
                at += 1;
            } else {
                // An entry that moves up to this place is looked at next.
                self.remove(at).into_iter().for_each(&mut free);
            }
        }
        false
    }

    /// Removes the pages that are not pinned, and gives back the memory of the table with the last page.
    pub(super) fn shrink(&mut self, mut free: impl FnMut(P)) {
        while let Some(page) = self.replace_one() {
            free(page);
        }
        if self.used == 0 {
            (self.table, self.hand) = (Vec::new(), 0);
        }
    }

    /// Removes all pages, as at the first read behind a commit of another connection. A large table that is
    /// sparse begins anew, so that it is not cleared for each commit of others between few reads. Returns whether it was.
    fn clear(&mut self, free: impl FnMut(P)) -> bool {
        self.table.iter().filter_map(|entry| entry.page).for_each(free);
        let entries = self.table.len();
        let is_sparse = entries > TABLE_LARGE && self.used * TABLE_SPARSE < entries;
        if is_sparse {
            self.table = Vec::new();
        }
        self.table.fill(Entry::NONE);
        (self.used, self.pinned, self.hand) = (0, 0, 0);
        is_sparse
    }

    /// Removes a page that is not pinned, if there is one. One that was asked for again stays for another round of the search.
    pub(super) fn replace_one(&mut self) -> Option<P> {
        if self.used == self.pinned {
            return None;
        }
        loop {
            let (at, next) = (self.hand, (self.hand + 1) & self.mask());
            let entry = self.table.get_mut(at)?;
            if entry.is_none() || entry.pinned {
                self.hand = next;
            } else if entry.again {
                entry.again = false;
                self.hand = next;
            } else {
                // The entry behind it may move to its place.
                return self.remove(at);
            }
        }
    }

    /// Removes the page of an entry.
    fn remove(&mut self, at: usize) -> Option<P> {
        let entry = self.take(at);
        self.pinned -= usize::from(entry.pinned);
        self.used -= usize::from(!entry.is_none());
        entry.page
    }

    fn mask(&self) -> usize {
        self.table.len().wrapping_sub(1)
    }

    fn hash(&self, number: u32) -> usize {
        // The upper bits of the product are spread best.
        ((u64::from(number.wrapping_mul(SPREAD)) * self.table.len() as u64) >> u32::BITS) as usize
    }

    fn entry(&self, at: usize) -> Entry<P> {
        self.table.get(at).copied().unwrap_or(Entry::NONE)
    }

    fn set(&mut self, at: usize, entry: Entry<P>) {
        if let Some(place) = self.table.get_mut(at) {
            *place = entry;
        }
    }

    fn find(&self, number: u32) -> Option<usize> {
        let mut at = self.hash(number);
        loop {
            match self.table.get(at)?.number {
                0 => return None,
                found if found == number => return Some(at),
                _ => at = (at + 1) & self.mask(),
            }
        }
    }

    /// Makes room for one more entry, if there is memory.
    fn reserve_entry(&mut self) -> bool {
        if (self.used + 1) * 2 <= self.table.len() {
            return true;
        }
        let entries = TABLE_MIN.max(self.table.len() * 2);
        let mut larger = Vec::new();
        if larger.try_reserve_exact(entries).is_err() {
            return false;
        }
        larger.resize(entries, Entry::NONE);
        let before = std::mem::replace(&mut self.table, larger);
        for entry in before.into_iter().filter(|entry| !entry.is_none()) {
            self.insert(entry);
        }
        self.hand = 0;
        true
    }

    fn insert(&mut self, entry: Entry<P>) {
        let mut at = self.hash(entry.number);
        while !self.entry(at).is_none() {
            at = (at + 1) & self.mask();
        }
        self.set(at, entry);
    }

    /// Takes an entry out. Those behind it move up, so that no gap is before one of them.
    fn take(&mut self, at: usize) -> Entry<P> {
        let taken = self.entry(at);
        let (mut gap, mut next) = (at, at);
        loop {
            next = (next + 1) & self.mask();
            let entry = self.entry(next);
            if entry.is_none() {
                self.set(gap, Entry::NONE);
                return taken;
            }
            let behind_hash = next.wrapping_sub(self.hash(entry.number)) & self.mask();
            let behind_gap = next.wrapping_sub(gap) & self.mask();
            if behind_hash >= behind_gap {
                self.set(gap, entry);
                gap = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn with_bound(bound: usize) -> Pages<u64> {
        let mut pages = Pages::new(true);
        pages.set_bound(bound, |_| unreachable!("there are none"));
        pages
    }

    /// As a cache does it; the memory of a page is the step that made it. Returns what was replaced.
    fn fetch(pages: &mut Pages<u64>, number: u32, step: u64) -> (u64, Option<u64>) {
        if let Some(page) = pages.pin(number) {
            return (page, None);
        }
        let replaced = pages.replace_at_bound();
        assert!(pages.add(number, step));
        (step, replaced)
    }

    fn read(pages: &mut Pages<u64>, number: u32) {
        fetch(pages, number, 0);
        pages.unpin(number, false);
    }

    #[test]
    fn pages_that_were_asked_for_again_outlast_those_of_a_long_read() {
        let mut pages = with_bound(10);
        read(&mut pages, 1);
        read(&mut pages, 1);
        for number in 2..100 {
            read(&mut pages, number);
            assert!(pages.peek(1).is_some(), "after {number}");
        }
        assert!(pages.count() <= 10);
    }

    #[test]
    fn pinned_pages_stay_and_make_a_cache_ask_for_fewer() {
        let mut pages = with_bound(10);
        for number in 1..=9 {
            assert!(pages.may_make(Make::IfEasy), "{number}");
            fetch(&mut pages, number, 0);
        }
        assert!(!pages.may_make(Make::IfEasy));
        assert!(pages.may_make(Make::Always));
        for number in 10..=20 {
            fetch(&mut pages, number, 0);
        }
        assert!((1..=20).all(|number| pages.pin(number).is_some()));
        for number in 1..=20 {
            pages.unpin(number, false);
        }
        assert!(pages.count() <= 10, "{} pages above the bound", pages.count());
    }

    #[test]
    fn the_memory_of_a_page_that_is_gone_is_given_back() {
        let mut pages = Pages::new(false);
        for number in 1..=4 {
            fetch(&mut pages, number, u64::from(number));
        }
        assert_eq!(pages.unpin(1, true), Some(1));
        assert_eq!(pages.renumber(2, 3), Some(3));
        assert_eq!(pages.peek(3), Some(2));
        let mut freed = Vec::new();
        pages.truncate(4, |page| freed.push(page));
        assert_eq!(freed, [4]);
        pages.unpin(3, false);
        pages.shrink(|page| freed.push(page));
        assert_eq!(freed, [4, 2]);
        assert_eq!((pages.count(), pages.table.len()), (0, 0));
    }

    #[test]
    fn a_table_that_is_cleared_keeps_its_room_unless_it_is_sparse() {
        let mut pages = Pages::new(false);
        for number in 1..=10_000 {
            fetch(&mut pages, number, 0);
        }
        let room = pages.table.len();
        assert!(!pages.truncate(0, |_| ()));
        assert_eq!((pages.count(), pages.table.len()), (0, room));
        fetch(&mut pages, 1, 0);
        assert!(pages.truncate(0, |_| ()));
        assert_eq!(pages.table.len(), 0);
    }

    /// Random calls, compared with a map: a page that is found is the one that was made, and each is given back once.
    #[test]
    fn random_calls_agree_with_a_map() {
        for seed in 1..=50_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut random = move |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                u32::try_from(state % below).unwrap()
            };
            let mut pages = with_bound(40);
            // The memory of each page that is there, and whether it is pinned.
            let mut known: HashMap<u32, (u64, bool)> = HashMap::new();
            let gone = |known: &mut HashMap<u32, (u64, bool)>, page: u64| {
                let before = known.len();
                known.retain(|_, (other, _)| *other != page);
                assert_eq!(known.len() + 1, before, "seed {seed}: page {page} is freed twice");
            };
            for step in 0..4000 {
                let number = 1 + random(120);
                let pinned = known.get(&number).is_some_and(|(_, pinned)| *pinned);
                match random(12) {
                    0..=6 => {
                        let (page, replaced) = fetch(&mut pages, number, step);
                        replaced.into_iter().for_each(|page| gone(&mut known, page));
                        let before = known.insert(number, (page, true));
                        assert_eq!(before.map_or(step, |(page, _)| page), page, "step {step}");
                    }
                    7 if pinned => {
                        pages
                            .unpin(number, true)
                            .into_iter()
                            .for_each(|page| gone(&mut known, page));
                        assert!(!known.contains_key(&number));
                    }
                    8 if pinned => {
                        let to = 1 + random(120);
                        if to != number && !known.get(&to).is_some_and(|(_, pinned)| *pinned) {
                            let replaced = pages.renumber(number, to);
                            replaced.into_iter().for_each(|page| gone(&mut known, page));
                            let page = known.remove(&number).unwrap();
                            assert!(known.insert(to, page).is_none());
                        }
                    }
                    9 if random(40) == 0 => {
                        pages.truncate(number, |page| gone(&mut known, page));
                        assert!(known.keys().all(|other| *other < number));
                    }
                    10 if random(40) == 0 => {
                        pages.shrink(|page| gone(&mut known, page));
                        assert!(known.values().all(|(_, pinned)| *pinned));
                    }
                    _ if pinned => {
                        let freed = pages.unpin(number, false);
                        known.entry(number).and_modify(|(_, pinned)| *pinned = false);
                        freed.into_iter().for_each(|page| gone(&mut known, page));
                    }
                    _ => assert_eq!(pages.peek(number), known.get(&number).map(|(page, _)| *page)),
                }
                let pinned = known.values().filter(|(_, pinned)| *pinned).count();
                assert_eq!((pages.count(), pages.pinned), (known.len(), pinned), "step {step}");
                assert!(pages.count() <= pinned.max(40), "seed {seed}, step {step}");
            }
        }
    }
}
