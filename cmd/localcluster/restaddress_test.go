package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestOccupiedRESTAddressIsRefused(t *testing.T) {
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	occupied := listener.Addr().String()
	runs(t.Context(), t, []string{"--dir", t.TempDir(), "--rest", "http://" + occupied}, 1, occupied+" is not free")
	for _, bad := range []string{"9080", "127.0.0.1:9080", "http://127.0.0.1", "https://127.0.0.1:9080", "http://127.0.0.1:9080/ws"} {
		runs(t.Context(), t, []string{"--rest", bad}, 1, "want an address")
	}
}

func TestRESTAddress(t *testing.T) {
	got, err := chooseREST("http://127.0.0.1:0")
	if err != nil || strings.HasSuffix(got, ":0") || free(got) != nil {
		t.Fatalf("port 0 gives %q, %v", got, err)
	}
	expect.Same(t, "a free address", got, expect.Get(chooseREST("http://"+got))(t))
}

// Without a wish, an occupied usual port is no failure: another one is taken, and the user learns which.
func TestUsualRESTAddressInUse(t *testing.T) {
	if listener, err := net.Listen("tcp", usualREST); err == nil { // else another process has it, which serves as well
		defer listener.Close()
	}
	var out bytes.Buffer
	l := &launcher{screen: newScreen(&out)}
	expect.OK(t, l.takeREST())
	expect.That(t, l.restAddress != usualREST && free(l.restAddress) == nil, "took %s", l.restAddress)
	expect.Says(t, out.String(), usualREST+" is in use", "http://"+l.restAddress)
}
