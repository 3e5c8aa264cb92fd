import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import "@xyflow/react/dist/style.css";
import "./gantt/gantt.css";
import "./page.css";
import { type DeployState, DeployView } from "./deploy/DeployView";
import { DrawView, type DrawState, NEW } from "./draw/DrawView";
import { ExperimentsView } from "./ExperimentsView";
import { type PlanState, PlanView } from "./PlanView";
import { RulesView } from "./RulesView";
import { RunView } from "./RunView";
import { RunsView } from "./RunsView";
import { FRESH, type SimulateState, SimulateView } from "./simulate/SimulateView";
import { text } from "./text";

type View = keyof typeof text.views;
const VIEWS = Object.keys(text.views) as View[];

function Page() {
  const [view, setView] = useState<View>(VIEWS.find((name) => `#${name}` === location.hash) ?? "plan");
  const [rules, setRules] = useState("");
  const [plan, setPlan] = useState<PlanState>({ program: "", platform: "local", scheduler: "auto", made: [] });
  const [draw, setDraw] = useState<DrawState>(NEW);
  const [deploy, setDeploy] = useState<DeployState>({ pipeline: "", platform: "local", app: "", made: null });
  const [simulate, setSimulate] = useState<SimulateState>(FRESH);
  const show = (name: View): void => {
    setView(name);
    history.replaceState(null, "", `#${name}`);
  };
  return (
    <>
      <header>
        <h1>Headrace</h1>
        <nav aria-label={text.navigation}>
          {VIEWS.map((name) => (
            <button key={name} type="button" aria-current={view === name ? "page" : undefined} onClick={() => show(name)}>
              {text.views[name]}
            </button>
          ))}
        </nav>
      </header>
      <main>
        {view === "draw" && <DrawView state={draw} change={setDraw} use={(program, next) => {
          if (next === "deploy") setDeploy({ ...deploy, app: program });
          else setPlan({ ...plan, program });
          show(next);
        }} />}
        {view === "plan" && <PlanView state={plan} change={setPlan} rules={rules} setRules={setRules} />}
        {view === "rules" && <RulesView rules={rules} change={setRules} />}
        {view === "run" && <RunView program={plan.program} choose={(program) => setPlan({ ...plan, program })} />}
        {view === "deploy" && <DeployView state={deploy} change={setDeploy} />}
        {view === "simulate" && <SimulateView program={plan.program} choose={(program) => setPlan({ ...plan, program })} state={simulate} change={setSimulate} />}
        {view === "runs" && <RunsView />}
        {view === "experiments" && <ExperimentsView />}
      </main>
    </>
  );
}

createRoot(document.getElementById("root")!).render(<StrictMode><Page /></StrictMode>);
