package nodeagent

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// The range of pod addresses: 10.128.0.0/9, eight million of them.
const (
	firstAddress = uint32(10)<<24 | 128<<16
	addressCount = uint32(1) << 23
)

// addressPool hands out pod addresses. Each is in use by one pod at a time.
type addressPool struct {
	mu    sync.Mutex
	next  uint32
	byPod map[types.UID]netip.Addr
	taken map[netip.Addr]types.UID
}

func newAddressPool() *addressPool {
	return &addressPool{next: 1, byPod: map[types.UID]netip.Addr{}, taken: map[netip.Addr]types.UID{}}
}

// claim returns the pod's address, a new one the first time.
func (p *addressPool) claim(pod types.UID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.byPod[pod]; ok {
		return a.String()
	}
	for {
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], firstAddress+p.next%addressCount)
		p.next++
		a := netip.AddrFrom4(raw)
		if _, used := p.taken[a]; !used && raw[3] != 0 && raw[3] != 255 {
			p.byPod[pod], p.taken[a] = a, pod
			return a.String()
		}
	}
}

// adopt records an address found in a pod's status. Foreign or unreadable ones are
// ignored.
func (p *addressPool) adopt(pod types.UID, ip string) {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, has := p.byPod[pod]; has {
		return
	}
	if _, used := p.taken[a]; !used {
		p.byPod[pod], p.taken[a] = a, pod
	}
}

// release returns a pod's address to the pool.
func (p *addressPool) release(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.byPod[pod]; ok {
		delete(p.byPod, pod)
		delete(p.taken, a)
	}
}
