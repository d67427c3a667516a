package scenario

import (
	"fmt"
	"strconv"
)

// Place is the requirements of a pod on its node beside room; the zero value is none.
type Place struct {
	// Port is a port of the node that it uses alone; 0 for none.
	Port int32
	// Group is its group; empty for none.
	Group string
	// Apart is the group of which no pod may be on the node, Beside one of which a pod
	// must be there; empty for none.
	Apart, Beside string
	// Spread is the group of which the node may have at most one pod more than any
	// other; empty for none.
	Spread string
}

// read takes a word of a line. It returns an error for any other word.
func (p *Place) read(key, value string) error {
	switch key {
	case "port":
		n, err := strconv.ParseUint(value, 10, 16)
		p.Port = int32(n)
		return err
	case "group":
		p.Group = value
	case "apart":
		p.Apart = value
	case "beside":
		p.Beside = value
	case "spread":
		p.Spread = value
	default:
		return fmt.Errorf("what is %q", key)
	}
	return nil
}
