package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// standardInput is the name of the standard input where a file is named.
const standardInput = "-"

// liveTree asks the scheduler for its queues.
func liveTree(ctx context.Context, conn *connection) (*documents.Queue, error) {
	body, err := conn.request(ctx, http.MethodGet, queuesPath, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	tree, err := decodeTree(body)
	if err != nil {
		return nil, fmt.Errorf("the answer is no tree of queues: %w: is this the scheduler's REST interface?", err)
	}
	return tree, nil
}

// recordedTree reads a tree that "queues -o json" or the REST interface wrote;
// "-" is the standard input.
func recordedTree(name string, in io.Reader) (*documents.Queue, error) {
	text, err := readFile(name, in, maxAnswer)
	if err != nil {
		return nil, err
	}
	tree, err := decodeTree(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no recorded tree of queues: %w; record one with: kubectl paddock queues -o json", name, err)
	}
	return tree, nil
}

func decodeTree(text []byte) (*documents.Queue, error) {
	var tree documents.Queue
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	if tree.QueueName != "root" {
		return nil, fmt.Errorf("its queuename is %q, not root", tree.QueueName)
	}
	return &tree, checkTree(&tree)
}

// checkTree refuses trees that contradict themselves, so that nothing behind it
// has to.
func checkTree(q *documents.Queue) error {
	seen := map[string]bool{}
	for _, c := range q.Children {
		if c == nil {
			return fmt.Errorf("queue %q has a child that is null", q.QueueName)
		}
		name, below := strings.CutPrefix(c.QueueName, q.QueueName+".")
		switch {
		case !below || name == "" || strings.Contains(name, "."):
			return fmt.Errorf("queue %q is listed below %q", c.QueueName, q.QueueName)
		case seen[name]:
			return fmt.Errorf("queue %q is listed twice", c.QueueName)
		}
		seen[name] = true
		if err := checkTree(c); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file of at most that many bytes; "-" is the standard input.
func readFile(name string, in io.Reader, most int64) ([]byte, error) {
	if name != standardInput {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, nil
}
