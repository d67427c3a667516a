package localcluster

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test binary play a child process: "role" or "role argument".
const childVariable = "LOCALCLUSTER_TEST_CHILD"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(childVariable), " ")
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(playChild(role, argument))
}

// playChild is a program that behaves by its role, for at most a minute.
func playChild(role, argument string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	end := time.After(time.Minute)
	switch role {
	case "polite": // ends on SIGTERM
		fmt.Println("ready", os.Getpid())
		select {
		case s := <-signals:
			fmt.Println("bye:", s)
			return 0
		case <-end:
			return 9
		}
	case "stubborn": // ignores SIGTERM
		fmt.Println("ready", os.Getpid())
		<-end
		return 9
	case "broken": // ends by itself
		fmt.Println("cannot go on")
		return 3
	case "launcher": // starts a stubborn child and waits
		if _, err := launch(child("grandchild", "stubborn"), argument, func(*Process) {}); err != nil {
			fmt.Println(err)
			return 4
		}
		fmt.Println("ready")
		<-end
		return 9
	default:
		fmt.Println("unknown role", role)
		return 8
	}
}
