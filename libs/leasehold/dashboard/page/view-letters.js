// Dead letters: what could not be applied, why, and what one can do about it.

import { ask, may, session } from "/page/ask.js";
import { address, button, code, day, empty, link, make, pill, section, soft, table } from "/page/dom.js";

export async function read(detail, before) {
  if (detail === null) return ask("/api/dead-letters");
  const told = before.letter && String(before.letter.offset) === detail ? before.letter : await ask(`/api/dead-letters/${encodeURIComponent(detail)}`);
  return { letter: told };
}

export function view(state, data, detail) {
  return detail === null ? all(data) : one(data.letter);
}

function all(data) {
  return [
    make("h1", {}, "Dead letters"),
    section("letters", "Newest first", data.letters.length ? table("letters", "Dead letters", [">offset", "when", "code", "message", "request", "asked by"], data.letters.map((letter) => ({ key: `letter-${letter.offset}`, cells: [
      link(address("dead-letters", letter.offset), String(letter.offset)), day(letter.decided_us), pill(letter.code, "warn"), letter.message, code(letter.id), letter.asked_by || "–"] })))
      : empty("No dead letter: everything submitted was committed, or refused to its sender.")),
  ];
}

function one(letter) {
  const text = typeof letter.request === "string" ? letter.request : JSON.stringify(letter.request, null, 2);
  const details = Object.entries(letter.detail || {});
  return [
    make("p", { class: "back" }, link("/dead-letters", "← all dead letters")),
    make("h1", {}, `Dead letter ${letter.offset}`),
    section("why", "Why it was refused",
      make("p", {}, pill(letter.code, "warn"), ` ${letter.message}`),
      make("p", {}, make("b", {}, "What helps: "), letter.advice),
      make("p", { class: "soft" }, `Request ${letter.id}, attempt ${letter.attempt}, refused at ${day(letter.decided_us)}${letter.asked_by ? `, asked by ${letter.asked_by}` : ""}. It stood ${letter.lane_offset < 0 ? "at no offset of" : `at offset ${letter.lane_offset} of`} ${letter.lane}.`),
      details.length ? make("dl", {}, details.map(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])) : null),
    section("request", "The request",
      letter.request === null ? empty("It was not kept.") : make("label", { for: "request-text" }, "As it was sent; what you change here is submitted in its place"),
      letter.request === null ? null : make("textarea", { id: "request-text", rows: "12", spellcheck: "false", "data-own": true }, text),
      letter.request === null ? null : make("div", { class: "buttons" }, button("Submit again", "submit", { letter: letter.offset }),
        may() ? null : soft(session.there ? " You are asked to sign in first." : " Nobody can act here: no SQL node is named."))),
  ];
}

export const actions = {
  submit: (fields, { act, say }) => {
    try {
      act("resubmit", { letter: fields.letter, request: JSON.parse(document.getElementById("request-text").value) });
    } catch (error) {
      say(`What stands there is no JSON: ${error.message}`, "bad");
    }
  },
};
