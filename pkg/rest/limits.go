package rest

import (
	"net/http"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// limits bound what one reader, or all of them, can take.
type limits struct {
	// headerTime and readTime bound how long a request may take to arrive, writeTime
	// how long an answer may take to be read, idleTime how long a connection may be
	// kept without a request.
	headerTime, readTime, writeTime, idleTime time.Duration
	// headerBytes and bodyBytes bound a request; no document may be larger than a
	// configuration.
	headerBytes int
	bodyBytes   int64
	// drafts are the documents to validate that are in memory at a time: those that
	// arrive, and those that wait for their turn.
	drafts int32
	// connections are all that are open at a time, perHost those from one address.
	// reserved of them are only for known readers (see [boundedConn]).
	connections, reserved, perHost int
	// streams are all that are open at a time, streamsPerHost those of one address;
	// reservedStreams of them are only for known readers;
	// streamTime is how long a reader may take for the lines that are sent at once,
	// and streamAdmitted how long one that was admitted is not asked about again.
	streams, reservedStreams   int
	streamsPerHost             int
	streamTime, streamAdmitted time.Duration
}

func defaultLimits() limits {
	return limits{
		headerTime: 5 * time.Second, readTime: 10 * time.Second, writeTime: time.Minute, idleTime: time.Minute,
		headerBytes: 16 << 10, bodyBytes: config.MaxDocumentBytes, drafts: 4,
		connections: 256, reserved: 32, perHost: 64,
		streams: 100, reservedStreams: 20, streamsPerHost: 15, streamTime: 10 * time.Second, streamAdmitted: 5 * time.Minute,
	}
}

func (l limits) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ConnContext:       withConn,
		ReadHeaderTimeout: l.headerTime, ReadTimeout: l.readTime, WriteTimeout: l.writeTime, IdleTimeout: l.idleTime,
		MaxHeaderBytes: l.headerBytes,
	}
}
