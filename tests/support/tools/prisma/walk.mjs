// What a program does with Prisma's client: prints what each query comes to.
import { PrismaPg } from "@prisma/adapter-pg";
import made from "./made/index.js";

const { PrismaClient, Prisma } = made;
const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env.WALK_URL }),
});

function plain(_, value) {
  if (typeof value === "bigint") return `${value}n`;
  return value;
}

async function show(name, asked) {
  try {
    console.log(name, JSON.stringify(await asked, plain));
  } catch (error) {
    console.log(name, "failed:", error.code ?? error.constructor.name);
    console.error(name, error.message, error.cause ?? "");
  }
}

const built = new Date("1899-02-28T00:00:00Z");
await show("nested", prisma.ship.create({
  data: {
    name: "Alma", built, tags: ["wood", "it's"], scores: [3, 1], length: "12.25",
    crew: { create: [{ email: "a@b", age: 41 }, { email: "c@d", raw: Buffer.from([0, 255]) }] },
    voyages: { create: [{ leg: 1, miles: 9007199254740993n }, { leg: 2, notes: { calm: true, knots: [4, 5.5] } }] },
    ports: { create: { code: "ABC", name: "Old port" } },
  },
  select: {
    id: true, name: true, kind: true, built: true, length: true, tags: true, scores: true,
    crew: { select: { email: true, age: true, raw: true, weight: true }, orderBy: { email: "asc" } },
    voyages: { orderBy: { leg: "asc" } }, ports: true,
  },
}));
await show("many", prisma.ship.createMany({
  data: ["Bea", "Cora", "Dora", "Alma"].map((name, n) => ({ name, kind: n % 2 ? "KETCH" : "YAWL" })),
  skipDuplicates: true,
}));
await show("returned", prisma.port.createManyAndReturn({ data: [{ code: "DEF", name: "New" }, { code: "GH", name: "Far" }] }));
await show("taken", prisma.ship.create({ data: { name: "Alma" } }));
await show("gone", prisma.ship.update({ where: { id: 999 }, data: { name: "x" } }));
await show("no such ship", prisma.sailor.create({ data: { email: "n@n", shipId: 999 } }));
await show("filters", prisma.ship.findMany({
  where: {
    OR: [{ name: { contains: "OR", mode: "insensitive" } }, { tags: { has: "wood" } }, { scores: { hasSome: [9] } }],
    NOT: { name: { endsWith: "z" } },
  },
  orderBy: [{ kind: "desc" }, { name: "asc" }],
  select: { name: true, kind: true, _count: { select: { crew: true, ports: true } } },
}));
await show("related", prisma.ship.findMany({
  where: { crew: { some: { age: { gte: 40 } } }, voyages: { every: { leg: { lt: 9 } } }, ports: { none: { name: "x" } } },
  include: { ports: true, crew: { where: { age: { not: null } }, select: { email: true } } },
  omit: { seen: true },
}));
await show("json", prisma.voyage.findMany({ where: { notes: { path: ["calm"], equals: true } } }));
await show("json in array", prisma.voyage.findMany({
  where: { notes: { path: ["knots"], array_contains: [4] } }, select: { leg: true },
}));
await show("json text", prisma.voyage.count({ where: { notes: { path: ["none"], string_contains: "x" } } }));
await show("upsert", prisma.port.upsert({ where: { code: "ABC" }, create: { code: "ABC", name: "n" }, update: { name: "Port" } }));
await show("upsert new", prisma.port.upsert({ where: { code: "XYZ" }, create: { code: "XYZ", name: "n" }, update: { name: "Port" } }));
await show("connected", prisma.ship.update({
  where: { name: "Bea" },
  data: { ports: { connect: [{ code: "ABC" }, { code: "XYZ" }] }, length: { increment: 2 }, scores: { push: 7 } },
  select: { length: true, scores: true, ports: { orderBy: { code: "asc" } } },
}));
await show("set apart", prisma.ship.update({
  where: { name: "Bea" },
  data: { ports: { set: [{ code: "XYZ" }] }, crew: { connectOrCreate: { where: { email: "e@f" }, create: { email: "e@f" } } } },
  select: { ports: true, crew: { select: { email: true, age: true } } },
}));
await show("aggregate", prisma.voyage.aggregate({ _sum: { miles: true }, _avg: { leg: true }, _max: { leg: true }, _count: true }));
await show("groups", prisma.ship.groupBy({
  by: ["kind"], _count: { _all: true }, _max: { length: true }, having: { length: { _min: { gt: 1 } } }, orderBy: { kind: "asc" },
}));
await show("distinct", prisma.ship.findMany({ distinct: ["kind"], orderBy: { kind: "asc" }, select: { kind: true } }));
await show("page", prisma.ship.findMany({ cursor: { name: "Bea" }, skip: 1, take: 2, orderBy: { name: "asc" }, select: { name: true } }));
await show("page back", prisma.ship.findMany({ cursor: { name: "Dora" }, take: -2, orderBy: { name: "asc" }, select: { name: true } }));
await show("by pair", prisma.voyage.findUnique({ where: { shipId_leg: { shipId: 1, leg: 2 } } }));
await show("updated many", prisma.sailor.updateManyAndReturn({ where: { age: { lt: 50 } }, data: { weight: { multiply: 2 } }, select: { email: true, weight: true } }).then((rows) => rows.sort((a, b) => a.email < b.email ? -1 : 1)));
await show("batch", prisma.$transaction([
  prisma.sailor.update({ where: { email: "a@b" }, data: { chief: { connect: { email: "c@d" } } }, select: { age: true } }),
  prisma.sailor.count({ where: { chief: { email: "c@d" } } }),
]));
await show("undone", prisma.$transaction(async (tx) => {
  await tx.sailor.deleteMany({ where: { follows: { none: {} }, age: { lt: 40 } } });
  await tx.port.update({ where: { code: "GH" }, data: { name: "gone" } });
  throw new Error("undo");
}));
await show("serializable", prisma.$transaction(
  async (tx) => {
    const port = await tx.port.findUniqueOrThrow({ where: { code: "GH" } });
    return tx.port.update({ where: { code: "GH" }, data: { name: `${port.name}!` } });
  },
  { isolationLevel: Prisma.TransactionIsolationLevel.Serializable },
));
await show("raw", prisma.$queryRaw`
  SELECT id, name, tags, length, kind::text, built FROM "Ship" WHERE name = ${"Alma"} AND id = ANY(${[1, 2]})`);
await show("raw written", prisma.$executeRaw`UPDATE "Ship" SET built = ${built} WHERE kind = ${"KETCH"}::"Kind"`);
await show("raw wrong", prisma.$queryRaw`SELECT nothing FROM "Ship"`);
await show("restricted", prisma.ship.delete({ where: { name: "Bea" } }));
await show("deleted", prisma.sailor.deleteMany());
await show("cascades", prisma.ship.delete({ where: { name: "Alma" }, select: { name: true } }));
await show("left", Promise.all([prisma.voyage.count(), prisma.ship.count(), prisma.port.count(), prisma.sailor.count()]));
await prisma.$disconnect();
