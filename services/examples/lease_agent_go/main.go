// A thin agent in Go: it follows the versions of one table and holds a lease on the one it uses, so
// that a schema change waits for it as for any agent. What it asks of the ledger is described in
// docs/how-to/hold-leases.md.
//
//	lease_agent BOOTSTRAP DATABASE REDIS LEDGER.LUA TABLE TTL_MS
//
// Each line that it prints is a JSON object: the version that it holds, with its columns, or that
// its lease has run out.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
)

const agentName = "go-agent"
const sessionMax = 1<<53 - 1

// version is what is used of a version event.
type version struct {
	TableID  int64  `json:"table_id"`
	Table    string `json:"table"`
	Version  int64  `json:"version"`
	State    string `json:"state"`
	Elements []struct {
		Kind  string `json:"kind"`
		Name  string `json:"name"`
		State string `json:"state"`
	} `json:"elements"`
}

func (v version) columns() []string {
	names := []string{}
	for _, each := range v.Elements {
		if each.Kind == "column" && each.State == "public" {
			names = append(names, each.Name)
		}
	}
	return names
}

// refusal is the reason of an answer that refuses.
type refusal string

func (r refusal) Error() string { return string(r) }

// ledger calls the script in Redis for one database.
type ledger struct {
	client *redis.Client
	script *redis.Script
	prefix string
}

// ask returns the run id of the ledger that answers, and the fields of the answer.
func (l ledger) ask(ctx context.Context, words ...any) (string, []any, error) {
	raw, err := l.script.Run(ctx, l.client, []string{l.prefix}, words...).Slice()
	if err != nil {
		return "", nil, err
	}
	run := fmt.Sprint(raw[1])
	if raw[0] == "refused" {
		return run, nil, refusal(fmt.Sprint(raw[2]))
	}
	return run, raw[2:], nil
}

// agent is a session in the ledger with the leases that it has.
type agent struct {
	ledger    ledger
	ttl       time.Duration
	session   int64
	counter   int64 // rises with every call that extends the session
	confirmed int64 // of the last one that was answered
	run       string
	expires   time.Time
	tableID   int64
	held      map[int64]bool // versions
}

func (a *agent) usable() bool { return time.Now().Before(a.expires) }

// extended notes an answer that extends the session, from when the call was sent.
func (a *agent) extended(run string, sent time.Time, vouching any) error {
	if call, ok := vouching.(string); ok && call != "0" {
		return errors.New("this Redis has Sentinels: calls have to be vouched for (use a library)")
	}
	a.run, a.confirmed = run, a.counter
	a.expires = sent.Add(a.ttl - a.ttl/30) // clocks may run at different rates
	return nil
}

// register tells the ledger all that is held here; it is how a session begins, too.
func (a *agent) register(ctx context.Context) error {
	if a.session == 0 {
		a.session, a.counter, a.confirmed = 1+rand.Int64N(sessionMax), 0, 0
	}
	a.counter++
	words := []any{"register", agentName, a.session, a.counter}
	for each := range a.held {
		words = append(words, a.tableID, each)
	}
	sent := time.Now()
	run, fields, err := a.ledger.ask(ctx, words...)
	if err != nil {
		return a.failed(err)
	}
	for _, each := range fields[1].([]any) { // what may be held no more
		old, _ := strconv.ParseInt(fmt.Sprint(each.([]any)[1]), 10, 64)
		delete(a.held, old)
	}
	return a.extended(run, sent, fields[2])
}

// renew extends the session with all its leases.
func (a *agent) renew(ctx context.Context) error {
	a.counter++
	sent := time.Now()
	run, fields, err := a.ledger.ask(ctx, "renew", a.session, a.counter, len(a.held), a.confirmed)
	if err != nil {
		return a.failed(err)
	}
	if run != a.run { // another ledger's word: it may not know the leases
		return a.register(ctx)
	}
	return a.extended(run, sent, fields[1])
}

// failed gives the session up where the ledger does not have it any more.
func (a *agent) failed(err error) error {
	var why refusal
	if errors.As(err, &why) && (why == "dead" || why == "expired" || why == "taken") {
		a.session = 0
	}
	return err
}

// move takes a lease on a version, then gives the older ones back. Only then is nobody between.
func (a *agent) move(ctx context.Context, to version) error {
	a.tableID = to.TableID
	run, _, err := a.ledger.ask(ctx, "acquire", a.session, a.counter, to.TableID, to.Version)
	if err != nil {
		return a.failed(err)
	}
	a.held[to.Version] = true
	if run != a.run {
		return a.register(ctx)
	}
	for old := range a.held {
		if old != to.Version {
			if _, _, err = a.ledger.ask(ctx, "release", a.session, a.counter, to.TableID, old); err != nil {
				return a.failed(err)
			}
			delete(a.held, old)
		}
	}
	return nil
}

func main() {
	bootstrap, database, address, path, table := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	milliseconds, err := strconv.Atoi(os.Args[6])
	check(err)
	source, err := os.ReadFile(path)
	check(err)
	options, err := redis.ParseURL(address)
	check(err)
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumeTopics(database+".versions-history"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	check(err)
	ttl := time.Duration(milliseconds) * time.Millisecond
	a := &agent{
		ledger: ledger{redis.NewClient(options), redis.NewScript(string(source)), "leasehold:{" + database + "}"},
		ttl:    ttl,
		held:   map[int64]bool{},
	}
	run(context.Background(), a, consumer, table)
}

// run follows the table: what is newest is held, and the session renewed three times in its life.
func run(ctx context.Context, a *agent, consumer *kgo.Client, table string) {
	var newest version
	var told int64
	renewal := time.Now()
	for {
		within, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetched := consumer.PollFetches(within)
		cancel()
		fetched.EachRecord(func(record *kgo.Record) {
			var event version
			check(json.Unmarshal(record.Value, &event))
			if event.TableID == newest.TableID || (newest.TableID == 0 && event.Table == table) {
				newest = event
			}
		})
		if told > 0 && !a.usable() { // before the ledger is asked, which begins anew
			say(map[string]any{"lapsed": told})
			told = 0
		}
		if a.session == 0 || time.Now().After(renewal) {
			err := error(nil)
			if a.session == 0 || a.expires.IsZero() {
				err = a.register(ctx)
			} else if err = a.renew(ctx); err == refusal("register") || err == refusal("closed") {
				err = a.register(ctx)
			}
			if err != nil {
				log.Printf("the ledger: %v", err) // tried again at once: the lease runs on meanwhile
			} else {
				renewal = time.Now().Add(a.ttl / 3)
			}
		}
		if !a.usable() {
			continue
		}
		if newest.TableID != 0 && newest.Version != told && newest.State != "absent" {
			if err := a.move(ctx, newest); err != nil {
				log.Printf("version %d: %v", newest.Version, err)
				continue
			}
			told = newest.Version
			say(map[string]any{"version": told, "columns": newest.columns()})
		}
	}
}

func say(what any) {
	line, err := json.Marshal(what)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
