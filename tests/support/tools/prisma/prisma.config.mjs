// Prisma's own engines are programs that it fetches; these parts of it are of its packages alone.
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";

// What the adapter can't read of the catalog's columns, of a PostgreSQL either: "char", name and
// their arrays, which its engine asks for. They are told as text.
const TOLD_AS = new Map([[18, 25], [19, 25], [1002, 1009], [1003, 1009]]);

function retold(result) {
  for (const each of Array.isArray(result) ? result : [result]) {
    for (const field of each?.fields ?? []) {
      field.dataTypeID = TOLD_AS.get(field.dataTypeID) ?? field.dataTypeID;
    }
  }
  return result;
}

class Client extends pg.Client {
  query(...words) {
    const last = words.at(-1);
    if (typeof last === "function") {
      words[words.length - 1] = (error, result) => last(error, retold(result));
    }
    const asked = super.query(...words);
    return asked instanceof Promise ? asked.then(retold) : asked;
  }
}

export default {
  experimental: { adapter: true },
  engine: "js",
  schema: process.env.WALK_SCHEMA ?? "schema.prisma",
  migrations: { path: "migrations" },
  adapter: async () => {
    const pool = new pg.Pool({ connectionString: process.env.WALK_URL, Client });
    return new PrismaPg(pool, { disposeExternalPool: true });
  },
};
