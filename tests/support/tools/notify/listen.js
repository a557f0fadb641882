// Listens by node-postgres while it waits for nothing else, and prints what it hears up to "end".
const [url, installed] = process.argv.slice(2);
const { Client } = require(`${installed}/node_modules/pg`);

(async () => {
  const listener = new Client(url);
  const sender = new Client(url);
  await listener.connect();
  await sender.connect();
  await listener.query("LISTEN news");
  const ended = new Promise((resolve) => {
    listener.on("notification", (heard) => {
      console.log(`${heard.channel} ${heard.payload}`);
      if (heard.payload === "end") resolve();
    });
  });
  await sender.query("BEGIN");
  await sender.query("NOTIFY news, 'first'");
  await sender.query("SELECT pg_notify('news', $1)", ["second"]);
  await sender.query("COMMIT");
  await sender.query("BEGIN; NOTIFY news, 'never'; ROLLBACK");
  await sender.query("NOTIFY news, 'end'");
  await ended;
  await listener.end();
  await sender.end();
})();
