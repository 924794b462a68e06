//! The code of `js/records/layout.ts`, from the declaration of the records of a write: straight-line code, because
//! every write runs it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use openkv::protocol::frame::{Field, Layout, Presence, RECORDS, RecordLayout, groups};
use openkv::protocol::numbers::Group;

const HEAD: &str = "\
// Duty: the records of a write: where their parts are, and writing the parts that need no encoder.
// Generated from crates/wire/src/protocol/frame/records.rs by `npm run generate`: do not edit.

import type { Writer } from \"../codec/writer.js\";
import {
IMPORTS
} from \"../native/contract.js\";
import { putText, readU32 } from \"../native/frame.js\";

/** The first byte of a record, without RELATIVE. */
export type Op =
OPS;

/** Offsets of a part that a record does not have. */
const NONE = -1;

KNOWN

/**
 * Offsets in the buffer of the last record read. A part that this record may lack is at -1 then, and so are the
 * key and the time of every other record; further parts of other records are stale.
 */
export class RecordLayout {
  op: Op = OP_END;
  /** Whether the time is in ms from the commit. */
  relative = false;
PROPERTIES
  /** Reads the record at `at`. Returns where the next one starts. */
  read(buf: Buffer, at: number): number {
    const first = buf[at++];
    const op = (first & ~RELATIVE) as Op;
    this.op = op;
    this.relative = op !== first;
    this.timeAt = NONE;
    this.keyStart = NONE;
    switch (op) {
CASES
      default:
        throw unknown(`record ${op satisfies never}`);
    }
  }

  private readFlags(flags: number, known: number): void {
    if (flags & ~known) throw unknown(`flag of record ${this.op}: ${flags}`);
    this.flags = flags;
  }
}

/** The little-endian u16 at `at`. */
function readU16(buf: Buffer, at: number): number {
  return buf[at] | (buf[at + 1] << 8);
}

function unknown(what: string): Error {
  return new Error(`a write has an unknown ${what}; please report this`);
}
";

/// The deepest indentation, within a case of the switch.
const CASE: &str = "        ";
const LINE_CHARS_MAX: usize = 100;

fn camel(name: &str) -> String {
    let mut out = String::new();
    for word in name.split('_') {
        let (first, rest) = word.split_at(word.len().min(1));
        out += &first.to_uppercase();
        out += &rest.to_lowercase();
    }
    out
}

/// The name of a field in JavaScript.
fn field_name(field: &Field) -> String {
    let name = camel(field.name);
    name[..1].to_lowercase() + &name[1..]
}

fn group(name: &str) -> &'static Group {
    groups().find(|group| group.name == name).expect("a group")
}

/// The name of a flag in JavaScript.
fn flag_name(of: &str, flag: &str) -> String {
    format!("{}{flag}", group(of).prefix)
}

/// The name of the constant of all flags of a group.
fn known_flags(of: &str) -> String {
    format!("{}_FLAGS", of.to_uppercase())
}

/// The constants of all flags of each group.
fn known() -> String {
    let mut lines = vec![];
    for field in RECORDS.iter().flat_map(|record| record.fields) {
        let Presence::Flags(of) = field.presence else { continue };
        let flags = group(of).numbers.iter().map(|number| flag_name(of, number.name));
        let flags = flags.collect::<Vec<_>>().join(" | ");
        lines.push(format!("const {} = {flags};", known_flags(of)));
    }
    lines.join("\n")
}

/// The size of a field that always has the same.
fn fixed_bytes(layout: Layout) -> Option<usize> {
    match layout {
        Layout::U8
        | Layout::U16
        | Layout::U32
        | Layout::U64
        | Layout::F64
        | Layout::Time
        | Layout::Stamp
        | Layout::Fixed(_) => Some(layout.bytes_min()),
        Layout::Key
        | Layout::Text
        | Layout::Sized
        | Layout::Value
        | Layout::Optional { .. }
        | Layout::List { .. } => None,
    }
}

/// What moves `at` behind a field; `None` for a list and an optional field.
fn skip(layout: Layout) -> Option<String> {
    if let Some(bytes) = fixed_bytes(layout) {
        return Some(format!("at += {bytes};"));
    }
    match layout {
        Layout::Key | Layout::Text | Layout::Sized => Some("at += 4 + readU32(buf, at);".into()),
        Layout::Value => Some("at += 5 + readU32(buf, at + 1);".into()),
        _ => None,
    }
}

fn count(layout: Layout, at: &str) -> String {
    match layout {
        Layout::U8 => format!("buf[{at}]"),
        Layout::U16 => format!("readU16(buf, {at})"),
        _ => format!("readU32(buf, {at})"),
    }
}

/// The statements that read a field.
fn read(field: &Field, layout: Layout) -> Vec<String> {
    let name = field_name(field);
    match layout {
        Layout::Key => vec![
            format!("this.{name}Start = at + 4;"),
            format!("at = this.{name}End = at + 4 + readU32(buf, at);"),
        ],
        Layout::List { count: of, item } => {
            let bytes = of.bytes_min();
            let mut lines = vec![format!("this.{name}At = at;")];
            if let Some(item_bytes) = item.iter().map(|of| fixed_bytes(*of)).sum::<Option<usize>>()
            {
                lines.push(format!("at += {bytes} + {item_bytes} * {};", count(*of, "at")));
            } else {
                lines.push(format!("at += {bytes};"));
                let number = count(*of, &format!("this.{name}At"));
                lines.push(format!("for (let left = {number}; left > 0; left--) {{"));
                let fixed: usize = item.iter().filter_map(|of| fixed_bytes(*of)).sum();
                let sized = matches!(item.last(), Some(Layout::Key | Layout::Text));
                assert!(
                    sized && item.len() <= 2,
                    "a list of keys or texts, each behind at most one fixed part"
                );
                let offset = if fixed == 0 { "at".into() } else { format!("at + {fixed}") };
                lines.push(format!("  at += {} + readU32(buf, {offset});", 4 + fixed));
                lines.push("}".into());
            }
            lines
        }
        Layout::Optional { of } => guarded("buf[at++] !== 0", field, *of),
        _ => vec![format!("this.{name}At = at;"), skip(layout).expect("a plain field")],
    }
}

/// The statements that read a field if a condition holds.
fn guarded(condition: &str, field: &Field, layout: Layout) -> Vec<String> {
    let mut lines = vec![];
    if field.name != "time" {
        lines.push(format!("this.{}At = NONE;", field_name(field)));
    }
    lines.push(format!("if ({condition}) {{"));
    lines.extend(read(field, layout).iter().map(|line| format!("  {line}")));
    lines.push("}".into());
    lines
}

fn case(record: &RecordLayout) -> Vec<String> {
    let mut lines = vec![];
    if !record.is_timed() {
        lines.push("if (this.relative) throw unknown(`record ${first}`);".into());
    }
    for field in record.fields {
        lines.extend(match field.presence {
            Presence::Always => read(field, field.layout),
            Presence::Flags(of) => vec![format!("this.readFlags(buf[at++], {});", known_flags(of))],
            Presence::If(of, flag) => {
                guarded(&format!("this.flags & {}", flag_name(of, flag)), field, field.layout)
            }
        });
    }
    lines.push("return at;".into());
    lines
}

/// Records of the same fields share their statements.
fn cases() -> String {
    let mut cases: Vec<(Vec<&RecordLayout>, Vec<String>)> = vec![];
    for record in RECORDS {
        let lines = case(record);
        match cases.iter_mut().find(|(_, same)| *same == lines) {
            Some((records, _)) => records.push(record),
            None => cases.push((vec![record], lines)),
        }
    }
    let mut out = String::new();
    for (records, lines) in cases {
        for record in records {
            writeln!(out, "      case OP_{}:", record.name).expect("a string");
        }
        for line in lines {
            writeln!(out, "{CASE}{line}").expect("a string");
        }
    }
    out.trim_end().to_owned()
}

fn form(layout: Layout) -> String {
    match layout {
        Layout::U8 => "u8".into(),
        Layout::U16 => "u16".into(),
        Layout::U32 => "u32".into(),
        Layout::U64 => "u64".into(),
        Layout::F64 | Layout::Time => "f64".into(),
        Layout::Stamp => format!("stamp({})", layout.bytes_min()),
        Layout::Fixed(bytes) => format!("{bytes} bytes"),
        Layout::Key => "key".into(),
        Layout::Text => "text".into(),
        Layout::Sized => "sized".into(),
        Layout::Value => "value".into(),
        Layout::Optional { of } => format!("u8 0 or 1, [{}]", form(*of)),
        Layout::List { count, item } => {
            let item = item.iter().map(|of| form(*of)).collect::<Vec<_>>();
            format!("{} n, n × ({})", form(*count), item.join(", "))
        }
    }
}

/// A field as pages and comments show it.
pub(crate) fn shown(field: &Field) -> String {
    let (form, name) = (form(field.layout), field.name.replace('_', " "));
    let text = if form == name { name } else { format!("{name}: {form}") };
    match field.presence {
        Presence::Always | Presence::Flags(_) => text,
        Presence::If(_, flag) => format!("[{text}] if {flag}"),
    }
}

/// The properties of the class: a line for each part of any record.
fn properties() -> String {
    let mut seen = BTreeSet::new();
    let mut out = String::new();
    for field in RECORDS.iter().flat_map(|record| record.fields) {
        if !seen.insert(field.name) {
            continue;
        }
        let name = field_name(field);
        let lines = match (field.presence, field.layout) {
            (Presence::Flags(_), _) => "  flags = 0;\n".to_owned(),
            (_, Layout::Key) => format!("  {name}Start = NONE;\n  {name}End = NONE;\n"),
            _ => format!("  {name}At = NONE;\n"),
        };
        out += &lines;
    }
    out
}

/// A parameter of a function that writes a field, and its statements; `None` if an encoder writes it.
fn put(field: &Field, record: &RecordLayout) -> Option<(Vec<String>, Vec<String>)> {
    let name = field_name(field);
    let one = |of: &str, line: String| Some((vec![format!("{name}: {of}")], vec![line]));
    match (field.presence, field.layout) {
        (Presence::Flags(_), _) => {
            let time = record.fields.iter().find(|field| field.layout == Layout::Time);
            let line = match time.map(|field| field.presence) {
                Some(Presence::If(of, flag)) => {
                    format!(
                        "writer.u8(time === undefined ? flags : flags | {});",
                        flag_name(of, flag)
                    )
                }
                _ => "writer.u8(flags);".into(),
            };
            one("number", line)
        }
        (presence, Layout::Time) => {
            let ms = |name: &str| format!("{name}: number | undefined");
            let line = match presence {
                Presence::If(..) => "if (time !== undefined) writer.f64(time);",
                Presence::Always | Presence::Flags(_) => "writer.f64((afterMs ?? atMs)!);",
            };
            Some((vec![ms("afterMs"), ms("atMs")], vec![line.into()]))
        }
        (Presence::If(..), _) => None,
        (Presence::Always, Layout::U8) => one("number", format!("writer.u8({name});")),
        (Presence::Always, Layout::F64) => one("number", format!("writer.f64({name});")),
        (Presence::Always, Layout::Text) => one("string", format!("putText(writer, {name});")),
        (Presence::Always, Layout::Optional { of }) => {
            let (of, line) = match of {
                Layout::Text => ("string | undefined", format!("putText(writer, {name});")),
                Layout::Stamp => ("string | null", format!("writer.ascii({name});")),
                _ => return None,
            };
            let none = of.rsplit(' ').next().expect("a type");
            Some((
                vec![format!("{name}: {of}")],
                vec![
                    format!("writer.u8({name} === {none} ? 0 : 1);"),
                    format!("if ({name} !== {none}) {line}"),
                ],
            ))
        }
        (Presence::Always, Layout::List { count: Layout::U8, item: [Layout::U32] }) => Some((
            vec![format!("{name}: readonly number[]")],
            vec![
                format!("writer.u8({name}.length);"),
                format!("for (const item of {name}) writer.u32(item);"),
            ],
        )),
        (Presence::Always, _) => None,
    }
}

/// The functions that write the parts of a record that need no encoder: its head, and what follows its keys.
fn functions(record: &RecordLayout) -> String {
    let mut out = String::new();
    let mut fields = record.fields;
    let mut is_head = true;
    while !fields.is_empty() {
        let (mut names, mut parameters, mut lines) = (vec![], vec![], vec![]);
        while let Some((field, rest)) = fields.split_first() {
            fields = rest;
            if let Some((given, written)) = put(field, record) {
                names.push(field.name.replace('_', " "));
                parameters.extend(given);
                lines.extend(written);
                continue;
            }
            // The encoder of the items follows their number.
            if let Layout::List { count, .. } = field.layout {
                let name = field_name(field);
                names.push(format!("the number of {name}"));
                parameters.push(format!("{name}: number"));
                lines.push(match count {
                    Layout::U16 => format!("writer.u16({name});"),
                    _ => format!("writer.u32({name});"),
                });
            }
            break;
        }
        let is_worth_it = parameters.len() > 1 || parameters.iter().any(|of| of.contains('|'));
        if is_worth_it {
            out += &function(record, is_head, &names, &parameters, &lines);
        }
        is_head = false;
    }
    out
}

fn function(
    record: &RecordLayout,
    is_head: bool,
    names: &[String],
    parameters: &[String],
    lines: &[String],
) -> String {
    let mut body = vec![];
    if is_head {
        let op = format!("OP_{}", record.name);
        body.push(if record.is_timed() {
            format!("writer.u8(afterMs === undefined ? {op} : {op} | RELATIVE);")
        } else {
            format!("writer.u8({op});")
        });
        let may_lack_time =
            |of: &Field| of.layout == Layout::Time && matches!(of.presence, Presence::If(..));
        if record.fields.iter().any(may_lack_time) {
            body.push("const time = afterMs ?? atMs;".into());
        }
    }
    body.extend(lines.iter().cloned());
    let part = if is_head { "Head" } else { "Tail" };
    let name = format!("put{}{part}", camel(record.name));
    let all = [&["writer: Writer".to_owned()][..], parameters].concat();
    let mut head = format!("export function {name}({}): void {{", all.join(", "));
    if head.chars().count() > LINE_CHARS_MAX {
        head = format!("export function {name}(\n  {},\n): void {{", all.join(",\n  "));
    }
    let body = body.iter().map(|line| format!("  {line}\n")).collect::<String>();
    let names = names.join(", ");
    let what = if is_head { "Starts a" } else { "Continues a" };
    format!("\n/** {what} record {}: {names}. */\n{head}\n{body}}}\n", record.name)
}

/// The offset of the time in a record that has one.
fn time_offset() -> String {
    let mut by_offset: Vec<(usize, Vec<&str>)> = vec![];
    for record in RECORDS.iter().filter(|record| record.is_timed()) {
        let before = record.fields.iter().take_while(|field| field.layout != Layout::Time);
        let before = before.map(|field| fixed_bytes(field.layout).expect("a fixed size"));
        let offset = 1 + before.sum::<usize>();
        match by_offset.iter_mut().find(|(same, _)| *same == offset) {
            Some((_, names)) => names.push(record.name),
            None => by_offset.push((offset, vec![record.name])),
        }
    }
    let mut out = "\n/** The offset of the time in a record that has one. Reading the whole record takes longer. */\n\
        export function timeOffsetOf(op: number): number {\n  switch (op) {\n"
        .to_owned();
    for (offset, names) in by_offset {
        for name in names {
            writeln!(out, "    case OP_{name}:").expect("a string");
        }
        writeln!(out, "      return {offset};").expect("a string");
    }
    out += "    default:\n      throw unknown(`record with a time: ${op}`);\n  }\n}\n";
    out
}

/// All of `js/records/layout.ts`.
pub(crate) fn layout() -> String {
    let code =
        HEAD.replace("PROPERTIES\n", &format!("{}\n", properties())).replace("CASES", &cases());
    let functions = RECORDS.iter().map(functions).collect::<String>();
    let code = code.replace("KNOWN", &known()) + &time_offset() + &functions;
    let mut names: Vec<String> = vec![];
    for group in groups() {
        names.extend(group.numbers.iter().map(|number| format!("{}{}", group.prefix, number.name)));
    }
    let is_used = |name: &String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        code.split(|c| !is_part(c)).any(|word| word == name)
    };
    names.retain(is_used);
    names.sort();
    names.dedup();
    let imports = names.iter().map(|name| format!("  {name},")).collect::<Vec<_>>().join("\n");
    let ops = RECORDS.iter().map(|record| format!("  | typeof OP_{}", record.name));
    let ops = ops.collect::<Vec<_>>().join("\n");
    code.replace("IMPORTS", &imports).replace("OPS", &ops)
}
