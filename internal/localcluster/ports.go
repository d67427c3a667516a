package localcluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The tried ports lie below the range from which Linux takes local ends of connections,
// so that no process gets one of them by accident between our check and the component's
// start.
const (
	firstPort = 20000
	lastPort  = 30000
)

// freePorts returns n different ports on 127.0.0.1 without a listener at this moment.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // it was only held to find different ports
		}
	}()
	for range 50 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		held = append(held, l)
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
