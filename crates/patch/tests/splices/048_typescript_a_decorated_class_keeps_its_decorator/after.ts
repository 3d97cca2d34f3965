import type { A } from "./a";

export interface Props {
  a: string;
}

export type Kind = "a" | "b";

export function f(a: string): void;
export function f(a: number): void;
export function f(a: unknown): void {
  console.log(a);
}

@Injectable()
export class Service<T extends A> {
  @Input() name: string = "x";

  constructor(private readonly a: A) {}

  @Log()
  async run(): Promise<void> {
    await 1;
  }
}

export default function main(): number {
  return 2;
}

namespace N {
  export const x = 1;
}

export enum Color {
  Red,
}
