package config

import (
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// parseACL reads an access list: "users groups", each separated by commas; "*" for all
// users, "" for none, a leading space for groups only. Invalid names are left out and
// returned as ignored.
func parseACL(text string) (acl ACL, ignored []string, err error) {
	text = strings.TrimRight(text, "\t\r\n")
	if strings.TrimSpace(text) == "" {
		return ACL{}, nil, nil
	}
	if strings.TrimSpace(text) == wildcard {
		return ACL{Everybody: true}, nil, nil
	}
	users, groups, _ := strings.Cut(text, " ")
	if strings.Contains(groups, " ") {
		return ACL{}, nil, errors.New("has more than one space: write users, one space, groups; each list separated by commas without spaces")
	}
	if users == wildcard || groups == wildcard {
		return ACL{Everybody: true}, nil, nil
	}
	acl.Users, ignored = aclNames(users, userName)
	var more []string
	acl.Groups, more = aclNames(groups, groupName)
	return acl, append(ignored, more...), nil
}

func aclNames(list string, name *regexp.Regexp) (names, ignored []string) {
	if list == "" {
		return nil, nil
	}
	listed := sets.New[string]()
	for entry := range strings.SplitSeq(list, ",") {
		switch {
		case !name.MatchString(entry):
			ignored = append(ignored, entry)
		case !listed.Has(entry):
			listed.Insert(entry)
			names = append(names, entry)
		}
	}
	return names, ignored
}

// String renders the list as "everybody", "nobody", or "users=a,b groups=c".
func (a ACL) String() string {
	var parts []string
	switch {
	case a.Everybody:
		return "everybody"
	case len(a.Users) == 0 && len(a.Groups) == 0:
		return "nobody"
	}
	if len(a.Users) > 0 {
		parts = append(parts, "users="+strings.Join(a.Users, ","))
	}
	if len(a.Groups) > 0 {
		parts = append(parts, "groups="+strings.Join(a.Groups, ","))
	}
	return strings.Join(parts, " ")
}
