// Reads a feed in Avro by its schema registry until a number of events, and prints each as JSON.
//
// Usage: go_consumer BROKER TOPIC REGISTRY EVENTS
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

const deadline = 2 * time.Minute

type reader struct {
	registry *sr.Client
	header   sr.ConfluentHeader
	schemas  map[int]avro.Schema
}

func (r *reader) decode(ctx context.Context, data []byte) (any, error) {
	if data == nil {
		return nil, nil
	}
	number, rest, err := r.header.DecodeID(data)
	if err != nil {
		return nil, err
	}
	schema, known := r.schemas[number]
	if !known {
		found, err := r.registry.SchemaByID(ctx, number)
		if err != nil {
			return nil, err
		}
		if schema, err = avro.Parse(found.Schema); err != nil {
			return nil, err
		}
		r.schemas[number] = schema
	}
	var value any
	return value, avro.Unmarshal(schema, rest, &value)
}

func run(broker, topic, url string, events int) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	registry, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	read := &reader{registry: registry, schemas: map[int]avro.Schema{}}
	out := json.NewEncoder(os.Stdout)
	for events > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			key, err := read.decode(ctx, record.Key)
			if err != nil {
				return err
			}
			value, err := read.decode(ctx, record.Value)
			if err != nil {
				return err
			}
			if err := out.Encode(map[string]any{"key": key, "value": value}); err != nil {
				return err
			}
			events--
		}
	}
	return nil
}

func main() {
	events, err := strconv.Atoi(os.Args[4])
	if err == nil {
		err = run(os.Args[1], os.Args[2], os.Args[3], events)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
