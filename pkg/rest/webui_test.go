package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// webUI is what the pages of yunikorn-web read, by endpoint: paths into the answer,
// where [] is every element of a list, with the JSON types it takes. "?" marks what
// it can do without. Its models name more that YuniKorn does not serve either: the
// partition of a node, and the queue and partition of an allocation.
var webUI = map[string][]string{
	"partitions": {
		"[].name string", "[].state string", "[].clusterId string", "[].lastStateTransitionTime number", "[].capacity object", "[].capacity.capacity ?object",
		"[].capacity.usedCapacity ?object", "[].nodeSortingPolicy.type string", "[].totalNodes number", "[].totalContainers number", "[].applications.total number", "[].applications.Accepted ?number", "[].applications.Running ?number", "[].applications.Completed ?number",
	},
	"clusters":     {"[].startTime number", "[].rmBuildInformation.[].buildVersion string", "[].rmBuildInformation.[].buildDate ?string", "[].rmBuildInformation.[].rmId ?string", "[].partition string", "[].clusterName string"},
	"history/apps": {"[].timestamp number", "[].totalApplications string"}, "history/containers": {"[].timestamp number", "[].totalContainers string"},
	"scheduler/node-utilizations": {
		"[].clusterId string", "[].partition string", "[].utilizations list", "[].utilizations.[].type string",
		"[].utilizations.[].utilization.[].bucketName string", "[].utilizations.[].utilization.[].numOfNodes ?number", "[].utilizations.[].utilization.[].nodeNames ?list",
	},
	"partition/default/queues": {
		"queuename string", "status string", "partition string", "isLeaf bool", "isManaged bool", "children ?list", "maxResource ?object", "guaranteedResource ?object",
		"allocatedResource ?object", "pendingResource ?object", "absUsedCapacity ?object", "properties ?object", "template ?object", "template.maxResource ?object", "template.guaranteedResource ?object", "template.properties ?object",
	},
	"partition/default/queue/root.b/applications": {
		"[].applicationID string", "[].usedResource ?object", "[].pendingResource ?object", "[].maxUsedResource ?object", "[].submissionTime number",
		"[].finishedTime ?number", "[].lastStateChangeTime ?number", "[].applicationState string", "[].stateLog.[].time number", "[].stateLog.[].applicationState string",
		"[].allocations.[].allocationKey string", "[].allocations.[].allocationTags object", "[].allocations.[].resource object", "[].allocations.[].priority string",
		"[].allocations.[].nodeId string", "[].allocations.[].applicationId string",
	},
	"partition/default/nodes": {
		"[].nodeID string", "[].hostName string", "[].rackName ?string", "[].attributes object", "[].capacity object", "[].allocated ?object", "[].occupied ?object",
		"[].available ?object", "[].utilized ?object", "[].allocations ?list", "[].foreignAllocations ?list",
	},
	"scheduler/healthcheck": {
		"Healthy bool", "HealthChecks list", "HealthChecks.[].Name string", "HealthChecks.[].Succeeded bool", "HealthChecks.[].Description string", "HealthChecks.[].DiagnosisMessage string",
	},
}

// reads tells what is wrong with a value for a reader of a path; empty for nothing.
func reads(value any, path, want string) string {
	if path == "" {
		kind := jsonType(value)
		switch value.(type) {
		case []any:
			kind = "list"
		case map[string]any:
			kind = "object"
		}
		if kind != strings.TrimPrefix(want, "?") {
			return fmt.Sprintf("is of type %s, want %s", kind, want)
		}
		return ""
	}
	step, rest, _ := strings.Cut(path, ".")
	if step == "[]" {
		list, ok := value.([]any)
		if !ok {
			return fmt.Sprintf("is %T, no list", value)
		}
		for _, v := range list {
			if wrong := reads(v, rest, want); wrong != "" {
				return wrong
			}
		}
		return ""
	}
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Sprintf("is %T, which has no %s", value, step)
	}
	v, there := object[step]
	if !there && (want[0] == '?' || strings.HasPrefix(rest, "[]")) {
		return ""
	}
	if !there {
		return "has no " + step
	}
	return reads(v, rest, want)
}

// TestPagesOfTheWebUI asks for what each page of yunikorn-web asks for, of a
// cluster without anything and of a busy one.
func TestPagesOfTheWebUI(t *testing.T) {
	empty := newCluster(t, "partitions: [{name: default, queues: [{name: root, queues: [{name: b}]}]}]")
	for name, c := range map[string]*cluster{"empty": empty, "busy": busyCluster(t)} {
		for page, fields := range webUI {
			var value any
			r, body := c.do(t, http.MethodGet, "/ws/v1/"+page)
			if err := json.Unmarshal(body, &value); err != nil || r.Code != http.StatusOK {
				t.Fatalf("%s cluster: %s: %d %v", name, page, r.Code, err)
			}
			for _, field := range fields {
				path, want, _ := strings.Cut(field, " ")
				if wrong := reads(value, path, want); wrong != "" {
					t.Errorf("%s cluster: %s: %s: %s", name, page, path, wrong)
				}
			}
			if list, is := value.([]any); is && name == "busy" && len(list) == 0 {
				t.Errorf("%s has nothing to show of a busy cluster", page)
			}
		}
	}
}

// TestReadsFindsWhatIsWrong: a wrong type, something missing, no list.
func TestReadsFindsWhatIsWrong(t *testing.T) {
	value := []any{map[string]any{"n": 1.0, "empty": []any{}}}
	for path, wrong := range map[string]bool{
		"[].n number": false, "[].n string": true, "[].m number": true, "[].m ?number": false, "n number": true, "[].n.[] number": true, "[].empty list": false, "[].empty.[].x number": false,
	} {
		field, want, _ := strings.Cut(path, " ")
		if got := reads(value, field, want); (got != "") != wrong {
			t.Errorf("%s: %q", path, got)
		}
	}
}
