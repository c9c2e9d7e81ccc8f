// interlink-go-template renders an existing JobScriptTemplate (Go text/template) for the interLink server.
//
// Usage: interlink-go-template TEMPLATE < create-request.json > script
//
// Only Go has Go's templates, and such templates name the Go fields of Kubernetes objects, so this small program
// renders them with the original engine and types. Exit code 1 and one line on stderr when it cannot.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/template"

	v1 "k8s.io/api/core/v1"
)

// What a template sees: the create request of the existing contract.
type createRequest struct {
	Pod            v1.Pod         `json:"pod"`
	Containers     []mounts       `json:"container"`
	JobScriptBuild scriptBuilding `json:"jobConfig"`
	JobScript      string         `json:"jobScript"`
}

type mounts struct {
	Name                string         `json:"name"`
	ConfigMaps          []v1.ConfigMap `json:"configMaps"`
	ProjectedVolumeMaps []v1.ConfigMap `json:"projectedvolumemaps"`
	Secrets             []v1.Secret    `json:"secrets"`
	EmptyDirs           []string       `json:"emptyDirs"`
}

type scriptBuilding struct {
	SingularityHub struct {
		Server               string `json:"server"`
		MasterToken          string `json:"master_token"`
		CacheValiditySeconds int    `json:"cache_validity_seconds"`
	} `json:"SingularityHubProxy"`
	ApptainerOptions struct {
		Executable    string `json:"executable"`
		Fakeroot      bool   `json:"fakeroot"`
		ContainAll    bool   `json:"containall"`
		FuseMode      string `json:"fuseMode"`
		NoInit        bool   `json:"noInit"`
		NoHome        bool   `json:"noHome"`
		NoPrivs       bool   `json:"noPrivs"`
		NvidiaSupport bool   `json:"nvidiaSupport"`
		Cleanenv      bool   `json:"cleanenv"`
		Unsquash      bool   `json:"unsquash"`
	} `json:"ApptainerOptions"`
	VolumesOptions struct {
		ScratchArea                 string   `json:"scratch_area"`
		ApptainerCacheDir           string   `json:"apptainer_cachedir"`
		ImageDir                    string   `json:"image_dir"`
		AdditionalDirectoriesInPath []string `json:"additional_directories_in_path"`
		FuseSleepSeconds            int      `json:"fuse_sleep_seconds"`
	} `json:"Volumes"`
}

func main() {
	if len(os.Args) != 2 {
		fail("usage: interlink-go-template TEMPLATE < create-request.json")
	}
	script, err := template.ParseFiles(os.Args[1])
	if err != nil {
		fail(err)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var request createRequest
	if err := json.Unmarshal(body, &request); err != nil {
		fail(err)
	}
	if err := script.Execute(os.Stdout, request); err != nil {
		fail(err)
	}
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(1)
}
