// SPDX-License-Identifier: Apache-2.0

// Lets Kubernetes' own HorizontalPodAutoscaler controller decide in random situations, and writes
// down what it was shown and what it decided: tests/golden/hpa/decisions.jsonl. It is compiled into
// the controller's package (run.sh), and calls its reconcileAutoscaler; what stands around that is
// as simple as can be. Time is that of testing/synctest, so nothing waits.

package podautoscaler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/monitor"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
)

type goldenPod struct {
	Phase      string `json:"phase"`
	Ready      bool   `json:"ready"`
	Started    int64  `json:"started"`    // Seconds, as all times.
	Transition int64  `json:"transition"` // When it became ready or unready.
	CPU        int64  `json:"cpu"`        // Milli-cores; -1 without a sample.
	Rate       int64  `json:"rate"`       // Thousandths of a request per second; -1 without one.
}

type goldenStep struct {
	At       int64       `json:"at"`
	Replicas int32       `json:"replicas"`
	CPUAt    int64       `json:"cpu_at"`   // When samples of CPU were taken; -1: there are none at all.
	External int64       `json:"external"` // Thousandths; -1: cannot be had.
	Pods     []goldenPod `json:"pods"`
	Desired  int32       `json:"desired"`
}

type goldenMetric struct {
	Type   string `json:"type"` // cpu (percent), rate (thousandths per pod), external (the same)
	Target int64  `json:"target"`
}

type goldenPolicy struct {
	Type   string `json:"type"`
	Value  int32  `json:"value"`
	Period int32  `json:"period"`
}

type goldenRules struct {
	Window    int32          `json:"window"`
	Select    string         `json:"select"`
	Tolerance int64          `json:"tolerance"` // Thousandths; -1: the controller's.
	Policies  []goldenPolicy `json:"policies"`
}

type goldenCase struct {
	Min     int32          `json:"min"`
	Max     int32          `json:"max"`
	Request int64          `json:"request"` // Milli-cores of a pod.
	Metrics []goldenMetric `json:"metrics"`
	Up      *goldenRules   `json:"up,omitempty"`
	Down    *goldenRules   `json:"down,omitempty"`
	Steps   []goldenStep   `json:"steps"`
}

type shownMetrics struct {
	step  *goldenStep
	start time.Time
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

func (m *shownMetrics) at(seconds int64) time.Time {
	return m.start.Add(time.Duration(seconds) * time.Second)
}

func (m *shownMetrics) GetResourceMetric(context.Context, v1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	if m.step.CPUAt < 0 {
		return nil, time.Time{}, errors.New("no samples")
	}
	shown := metrics.PodMetricsInfo{}
	for i, pod := range m.step.Pods {
		if pod.CPU >= 0 {
			shown[podName(i)] = metrics.PodMetric{Timestamp: m.at(m.step.CPUAt), Window: 30 * time.Second, Value: pod.CPU}
		}
	}
	return shown, m.at(m.step.CPUAt), nil
}

func (m *shownMetrics) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	shown := metrics.PodMetricsInfo{}
	for i, pod := range m.step.Pods {
		if pod.Rate >= 0 {
			shown[podName(i)] = metrics.PodMetric{Timestamp: m.at(m.step.At), Window: 30 * time.Second, Value: pod.Rate}
		}
	}
	return shown, m.at(m.step.At), nil
}

func (m *shownMetrics) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errors.New("not asked for")
}

func (m *shownMetrics) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	if m.step.External < 0 {
		return nil, time.Time{}, errors.New("cannot be had")
	}
	return []int64{m.step.External}, m.at(m.step.At), nil
}

// The scale of one deployment.
type oneScale struct{ replicas int32 }

func (s *oneScale) Scales(string) scaleclient.ScaleInterface { return s }
func (s *oneScale) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: s.replicas, Selector: "app=web"},
	}, nil
}
func (s *oneScale) Update(_ context.Context, _ schema.GroupResource, scale *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	s.replicas = scale.Spec.Replicas
	return scale, nil
}
func (s *oneScale) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("not asked for")
}

type statusSink struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
}

func (s statusSink) HorizontalPodAutoscalers(string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return s
}
func (s statusSink) UpdateStatus(_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return hpa, nil
}

func rulesOf(g *goldenRules) *autoscalingv2.HPAScalingRules {
	if g == nil {
		return nil
	}
	choose := autoscalingv2.ScalingPolicySelect(g.Select)
	rules := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &g.Window, SelectPolicy: &choose}
	if g.Tolerance >= 0 {
		rules.Tolerance = resource.NewMilliQuantity(g.Tolerance, resource.DecimalSI)
	}
	for _, p := range g.Policies {
		rules.Policies = append(rules.Policies, autoscalingv2.HPAScalingPolicy{
			Type: autoscalingv2.HPAScalingPolicyType(p.Type), Value: p.Value, PeriodSeconds: p.Period})
	}
	return rules
}

func hpaOf(g *goldenCase) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web", APIVersion: "apps/v1"},
			MinReplicas:    &g.Min, MaxReplicas: g.Max},
	}
	for _, m := range g.Metrics {
		percent := int32(m.Target)
		var spec autoscalingv2.MetricSpec
		switch m.Type {
		case "cpu":
			spec = autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}
		case "rate":
			spec = autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "rate"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(m.Target, resource.DecimalSI)}}}
		default:
			spec = autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "external"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(m.Target, resource.DecimalSI)}}}
		}
		hpa.Spec.Metrics = append(hpa.Spec.Metrics, spec)
	}
	if g.Up != nil {
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rulesOf(g.Up), ScaleDown: rulesOf(g.Down)}
	}
	return hpa
}

func podOf(i int, g goldenPod, request int64, start time.Time) *v1.Pod {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)) }
	status := v1.ConditionFalse
	if g.Ready {
		status = v1.ConditionTrue
	}
	started := at(g.Started)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI)}}}}},
		Status: v1.PodStatus{Phase: v1.PodPhase(g.Phase), StartTime: &started,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: at(g.Transition)}}},
	}
}

func randomRules(r *rand.Rand, windows []int32) *goldenRules {
	rules := &goldenRules{Window: windows[r.Intn(len(windows))], Select: "Max", Tolerance: -1}
	if r.Intn(4) == 0 {
		rules.Select = "Min"
	} else if r.Intn(12) == 0 {
		rules.Select = "Disabled"
	}
	if r.Intn(3) == 0 {
		rules.Tolerance = int64(r.Intn(300))
	}
	periods := []int32{15, 30, 60, 120}
	rules.Policies = append(rules.Policies, goldenPolicy{"Percent", int32(10 + r.Intn(15)*10), periods[r.Intn(4)]})
	if r.Intn(2) == 0 {
		rules.Policies = append(rules.Policies, goldenPolicy{"Pods", int32(1 + r.Intn(5)), periods[r.Intn(4)]})
	}
	return rules
}

func randomCase(r *rand.Rand) *goldenCase {
	g := &goldenCase{Min: int32(1 + r.Intn(3)), Max: int32(8 + r.Intn(30)), Request: int64(100 + 50*r.Intn(10))}
	kinds := []goldenMetric{{"cpu", int64(40 + 5*r.Intn(13))}, {"rate", int64(5000 + 1000*r.Intn(20))}, {"external", int64(8000 + 1000*r.Intn(20))}}
	if r.Intn(10) == 0 {
		kinds[0].Target = 130 // Of the request: more than all of it.
	}
	r.Shuffle(3, func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	g.Metrics = kinds[:1+r.Intn(3)]
	if r.Intn(3) > 0 {
		g.Up = randomRules(r, []int32{0, 0, 30, 60})
		g.Down = randomRules(r, []int32{0, 60, 300})
	}
	return g
}

// The pods there are: as many as replicas, new ones at first without samples and not ready.
func nextPods(r *rand.Rand, pods []goldenPod, replicas int32, now int64) []goldenPod {
	for int32(len(pods)) > replicas {
		pods = pods[:len(pods)-1]
	}
	for i := range pods {
		if !pods[i].Ready && now-pods[i].Started > 10 && r.Intn(2) == 0 {
			pods[i].Phase, pods[i].Ready, pods[i].Transition = "Running", true, now-int64(r.Intn(10))
		} else if pods[i].Ready && r.Intn(40) == 0 {
			pods[i].Ready, pods[i].Transition = false, now-int64(r.Intn(5))
		} else if r.Intn(60) == 0 {
			pods[i].Phase = "Failed"
		}
	}
	for int32(len(pods)) < replicas {
		phase := "Pending"
		if r.Intn(2) == 0 {
			phase = "Running"
		}
		pods = append(pods, goldenPod{Phase: phase, Started: now, Transition: now, CPU: -1, Rate: -1})
	}
	return pods
}

func randomSamples(r *rand.Rand, step *goldenStep, g *goldenCase, load float64) {
	step.CPUAt = step.At - int64(r.Intn(30))
	if r.Intn(25) == 0 {
		step.CPUAt = -1
	}
	step.External = int64(load * float64(g.Max) * 10000)
	if r.Intn(20) == 0 {
		step.External = -1
	}
	share := load * float64(g.Max) / float64(len(step.Pods))
	for i := range step.Pods {
		pod := &step.Pods[i]
		pod.CPU, pod.Rate = -1, -1
		if pod.Phase == "Pending" || r.Intn(15) == 0 {
			continue
		}
		noise := 0.7 + 0.6*r.Float64()
		pod.CPU = int64(share * noise * float64(g.Request))
		pod.Rate = int64(share * noise * 10000)
		if r.Intn(15) == 0 {
			pod.Rate = -1
		}
	}
}

func TestWriteGoldenDecisions(t *testing.T) {
	file, err := os.Create(os.Getenv("GOLDEN_OUT"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	r := rand.New(rand.NewSource(20))
	for n := 0; n < 24; n++ {
		synctest.Test(t, func(t *testing.T) {
			g := randomCase(r)
			start := time.Now().Add(-2000 * time.Second)
			scale := &oneScale{replicas: g.Min + int32(r.Intn(int(g.Max-g.Min)))}
			shown := &shownMetrics{start: start}
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			lister := corelisters.NewPodLister(indexer)
			mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
			mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, apimeta.RESTScopeNamespace)
			controller := &HorizontalController{
				scaleNamespacer: scale, hpaNamespacer: statusSink{}, mapper: mapper, tolerance: 0.1,
				eventRecorder: &record.FakeRecorder{}, downscaleStabilisationWindow: 5 * time.Minute, monitor: monitor.New(),
				podLister: lister, recommendations: map[string][]timestampedRecommendation{},
				scaleUpEvents: map[string][]timestampedScaleEvent{}, scaleDownEvents: map[string][]timestampedScaleEvent{},
				hpaSelectors: selectors.NewBiMultimap(),
				replicaCalc:  NewReplicaCalculator(shown, lister, 5*time.Minute, 30*time.Second),
			}
			hpa := hpaOf(g)
			var pods []goldenPod
			for int32(len(pods)) < scale.replicas {
				pods = append(pods, goldenPod{Phase: "Running", Ready: true, Started: int64(r.Intn(1900)), Transition: 1950, CPU: -1, Rate: -1})
			}
			load := 0.1 + 0.6*r.Float64()
			for i := 0; i < 14; i++ {
				time.Sleep(15 * time.Second)
				now := int64(time.Since(start) / time.Second)
				pods = nextPods(r, pods, scale.replicas, now)
				step := goldenStep{At: now, Replicas: scale.replicas, Pods: append([]goldenPod{}, pods...)}
				load = min(1.5, max(0.02, load*(0.6+0.9*r.Float64())))
				randomSamples(r, &step, g, load)
				for _, old := range indexer.List() {
					indexer.Delete(old)
				}
				for j, pod := range step.Pods {
					indexer.Add(podOf(j, pod, g.Request, start))
				}
				shown.step = &step
				controller.reconcileAutoscaler(context.Background(), hpa, "default/web")
				step.Desired = scale.replicas
				g.Steps = append(g.Steps, step)
			}
			line, err := json.Marshal(g)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(line, '\n'))
		})
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	file.Close()
}
