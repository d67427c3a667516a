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

// freePorts returns n different ports on 127.0.0.1 without a listener at this moment.
// A process gets no port twice before it has tried all: what a port was chosen for may
// listen only after the next port was chosen.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 50 * n {
		port := firstPort + int(tried.Add(1)%(lastPort-firstPort))
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		_ = l.Close() // it was only a trial
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1", n, firstPort, lastPort)
}

// FreeAddress returns a host:port on the loopback interface without a listener at this
// moment.
func FreeAddress() (string, error) {
	port, err := freePorts(1)
	if err != nil {
		return "", err
	}
	return address(port[0]), nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
