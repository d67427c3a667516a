package localcluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The tried ports lie below the range from which Linux takes local ends of connections,
// so that no process gets one of them by accident between our check and the component's
// start.
const (
	firstPort = 20000
	lastPort  = 30000
)

// tried counts the ports that this process has tried. It begins anywhere, for the
// processes beside.
var tried atomic.Uint32

func init() { tried.Store(rand.Uint32N(lastPort - firstPort)) }

// freePort returns a port on 127.0.0.1 without a listener at this moment. A process gets no
// port twice before it has tried all: what a port was chosen for may listen only after the
// next port was chosen.
func freePort() (int, error) {
	for range 250 {
		port := firstPort + int(tried.Add(1)%(lastPort-firstPort))
		if l, err := net.Listen("tcp", address(port)); err == nil {
			return port, l.Close() // it was only a trial
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", firstPort, lastPort)
}

// FreeAddress returns a host:port on the loopback interface without a listener at this
// moment.
func FreeAddress() (string, error) {
	port, err := freePort()
	return address(port), err
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
