package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestOccupiedRESTAddressIsRefused(t *testing.T) {
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	var out, problems bytes.Buffer
	args := []string{"--dir", t.TempDir(), "--rest", "http://" + listener.Addr().String()}
	if code := run(context.Background(), args, environment(), &out, &problems); code != 1 || !strings.Contains(problems.String(), listener.Addr().String()+" is not free") {
		t.Errorf("exit code %d, %s", code, problems.String())
	}
	for _, bad := range []string{"9080", "127.0.0.1:9080", "http://127.0.0.1", "https://127.0.0.1:9080", "http://127.0.0.1:9080/ws"} {
		problems.Reset()
		if code := run(context.Background(), []string{"--rest", bad}, environment(), &out, &problems); code != 1 || !strings.Contains(problems.String(), "want an address") {
			t.Errorf("%s: exit code %d, %s", bad, code, problems.String())
		}
	}
}

func TestRESTAddress(t *testing.T) {
	got, err := chooseREST("http://127.0.0.1:0")
	if err != nil || strings.HasSuffix(got, ":0") || free(got) != nil {
		t.Fatalf("port 0 gives %q, %v", got, err)
	}
	if again, err := chooseREST("http://" + got); err != nil || again != got {
		t.Errorf("a free address %s became %q, %v", got, again, err)
	}
}

// Without a wish, an occupied usual port is no failure: another one is taken, and the user learns which.
func TestUsualRESTAddressInUse(t *testing.T) {
	if listener, err := net.Listen("tcp", usualREST); err == nil { // else another process has it, which serves as well
		defer listener.Close()
	}
	var out bytes.Buffer
	l := &launcher{screen: newScreen(&out)}
	expect.OK(t, l.takeREST())
	if l.restAddress == usualREST || free(l.restAddress) != nil {
		t.Errorf("took %s", l.restAddress)
	}
	if text := out.String(); !strings.Contains(text, usualREST+" is in use") || !strings.Contains(text, "http://"+l.restAddress) {
		t.Errorf("the user is told %q", text)
	}
}
