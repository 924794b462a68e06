//! What goes wrong: connections are cut, processes die or stop for a while, PostgreSQL starts again or
//! fails over, its standby stands still.

use super::{End, Link, Message, Purpose, Role, SERVERS, What, World};
use crate::postgres::{Request, SessionId};
use crate::tables::ServerId;

impl World {
    pub(super) fn fault(&mut self) {
        let place = self.rng.below(SERVERS as u64) as usize;
        let leader = self.servers.iter().find(|(_, s)| matches!(s.role, Role::Leading(_)));
        let leader = leader.map(|(id, _)| *id);
        let victim = if self.rng.below(4) > 0 { leader } else { self.places[place] };
        match self.rng.below(10) {
            0..=3 => {
                if let Some(id) = victim {
                    let purpose = self.rng.pick(&[0, 0, 0, 1, 2]);
                    self.cut(id, purpose, true);
                }
            }
            4 => self.kill(victim),
            5 | 6 => {
                let us = self.rng.pick(&[500, 5000, 60_000, 120_000]);
                if let Some(server) = victim.and_then(|id| self.servers.get_mut(&id)) {
                    server.paused_until_us = self.now_us + us;
                }
            }
            7 => self.crash_postgres(false),
            8 => {
                self.postgres.clock_ms += self.rng.pick(&[-200, -20, 0, 30]);
                self.crash_postgres(true);
            }
            _ => self.frozen_until_us = self.now_us + self.rng.pick(&[2000, 20_000]),
        }
    }

    /// Cuts a connection. Some of the requests on their way still arrive, late.
    fn cut(&mut self, id: ServerId, purpose: usize, notices: bool) {
        let link = self.servers.get(&id).and_then(|server| server.links[purpose]);
        let Some(Link { session, .. }) = link else { return };
        let mine: Vec<(u64, u64)> = self
            .events
            .iter()
            .filter(|(_, what)| match what {
                What::ToPostgres(_, of, _) => *of == session,
                What::ToServer(_, Message::Response(of, ..)) => *of == session,
                _ => false,
            })
            .map(|(at, _)| *at)
            .collect();
        let mut arrive = self.rng.below(mine.len() as u64 + 1);
        let mut us = self.rng.pick(&[0, 2000, 30_000]);
        for at in mine {
            let Some(what) = self.events.remove(&at) else { continue };
            if let What::ToPostgres(..) = what
                && arrive > 0
            {
                arrive -= 1;
                us += self.rng.below(500);
                self.after(us, what);
            }
        }
        self.after(us + 1, What::ToPostgres(self.generation, session, None));
        if notices {
            let us = self.rng.pick(&[100, 1000, 10_000]);
            self.after(us, What::ToServer(id, Message::Cut(session)));
        }
    }

    /// A process dies or closes, and another starts in its place.
    fn kill(&mut self, id: Option<ServerId>) {
        let Some(id) = id else { return };
        let Some(place) = self.places.iter().position(|held| *held == Some(id)) else { return };
        let Some(server) = self.servers.get(&id) else { return };
        // A process that closes with nothing under way lets others lead at once.
        let is_idle = matches!(server.role, Role::Leading(_)) && server.batches.is_empty();
        if is_idle && self.rng.below(2) == 0 {
            self.send(id, Purpose::Control, Request::HandOver);
            self.close(id, Purpose::Control);
        }
        (0..3).for_each(|purpose| self.cut(id, purpose, false));
        self.places[place] = None;
        if let Some(server) = self.servers.remove(&id) {
            let waiting = server.batches.into_values().flatten().chain(server.pending);
            waiting.for_each(|call| self.end_call(call, End::Unknown));
        }
        let us = 5000 + self.rng.below(60_000);
        self.after(us, What::Start(place));
    }

    fn crash_postgres(&mut self, promotes: bool) {
        self.generation += 1;
        self.frozen_until_us = 0;
        self.postgres.crash(promotes);
        let links: Vec<(ServerId, SessionId)> = self
            .servers
            .iter()
            .flat_map(|(id, server)| server.links.iter().flatten().map(|link| (*id, link.session)))
            .collect();
        self.events.retain(|_, what| !matches!(what, What::ToServer(_, Message::Response(..))));
        for (id, session) in links {
            let us = self.rng.below(5000);
            self.after(us, What::ToServer(id, Message::Cut(session)));
        }
    }
}
